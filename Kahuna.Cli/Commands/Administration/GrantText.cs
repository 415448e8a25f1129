using Kahuna.Cli.Errors;
using Kahuna.Client.Administration;

namespace Kahuna.Cli.Commands.Administration;

/// <summary>
/// A grant as text: <c>PERMISSIONS:SCOPE:NAME</c>, such as <c>read,write:prefix:app/</c>; <c>SCOPE/LEVEL</c> names one
/// durability; <c>admin</c> alone is the right to administer. Static, any thread.
/// </summary>
internal static class GrantText
{
    private static readonly (string Word, Permissions Permission)[] s_permissions =
    [
        .. Enum.GetValues<Permissions>()
            .Where(static permission => permission != Permissions.None)
            .Select(static permission => (permission.ToString().ToLowerInvariant(), permission)),
    ];

    /// <summary>Reads a grant.</summary>
    /// <exception cref="CliException">It cannot be read; the message says which word.</exception>
    public static RoleGrant Read(string text)
    {
        if (text == "admin")
        {
            return RoleGrant.Admin;
        }

        string[] parts = text.Split(':', 3);
        if (parts.Length != 3)
        {
            throw new CliException(
                $"--grant: '{text}' is not PERMISSIONS:SCOPE:NAME, such as read,write:prefix:app/, and not admin.");
        }

        string[] scope = parts[1].Split('/', 2);
        return new RoleGrant
        {
            Permissions = parts[0].Split(',').Aggregate(
                Permissions.None, static (all, word) => all | PermissionOf(word.Trim())),
            Scope = scope[0] switch
            {
                "prefix" => GrantScope.Prefix,
                "key" => GrantScope.Key,
                "bucket" => GrantScope.Bucket,
                _ => throw new CliException($"--grant: the scope '{scope[0]}' is none of prefix, key and bucket."),
            },
            Name = parts[2],
            Level = scope.Length == 1 ? null : scope[1] switch
            {
                "persistent" => Durability.Persistent,
                "ephemeral" => Durability.Ephemeral,
                _ => throw new CliException($"--grant: the level '{scope[1]}' is neither persistent nor ephemeral."),
            },
        };
    }

    /// <summary>The text of a grant.</summary>
    public static string Of(RoleGrant grant)
    {
        if (grant == RoleGrant.Admin)
        {
            return "admin";
        }

        IEnumerable<string> words = grant.Permissions.HasFlag(Permissions.Data)
            ? grant.Permissions.HasFlag(Permissions.Admin) ? ["data", "admin"] : ["data"]
            : s_permissions.Where(known => grant.Permissions.HasFlag(known.Permission))
                .Select(static known => known.Word);
        string level = grant.Level is { } one ? "/" + one.ToString().ToLowerInvariant() : "";
        return $"{string.Join(',', words)}:{grant.Scope.ToString().ToLowerInvariant()}{level}:{grant.Name}";
    }

    private static Permissions PermissionOf(string word) =>
        s_permissions.FirstOrDefault(known => known.Word == word) is { Word: not null } found
            ? found.Permission
            : throw new CliException(
                $"--grant: the permission '{word}' is none of "
                    + $"{string.Join(", ", s_permissions.Select(static known => known.Word))}.");
}
