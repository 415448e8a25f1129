using System.CommandLine;
using Kahuna.Cli.Commands.Inputs;
using Kahuna.Cli.Connecting;
using Kahuna.Cli.Errors;
using Kahuna.Client.Administration;

namespace Kahuna.Cli.Commands.Administration;

/// <summary>What a user has: roles, names of certificates, a password and a quota.</summary>
internal sealed class UserOptions
{
    private readonly Option<string[]> _roles = Given.Many(
        "--role", "name", "Role of the user; may be repeated; an empty one: no roles");

    private readonly Option<string[]> _certificateNames = Given.Many(
        "--certificate-name", "name", "Name in the user's client certificate; may be repeated; an empty one: none");

    private readonly Option<string> _passwordFile = Given.Text(
        "--new-password-file", "file", "File with the password of the user");

    private readonly Option<long?> _keys = Given.Number("--quota-keys", "Most keys; 0: no limit");

    private readonly Option<long?> _bytes = Given.Number("--quota-bytes", "Most bytes of keys and values; 0: no limit");

    private readonly Option<long?> _operations = Given.Number(
        "--quota-operations", "Most operations in a second on each node; 0: no limit");

    public Option<bool?> Disabled { get; } = new("--disabled")
    {
        Description = "The user may not sign in; --disabled false lets it in again",
    };

    /// <summary>Adds them to a command.</summary>
    public void AddTo(CliCommand command)
    {
        command.Add(_roles);
        command.Add(_certificateNames);
        command.Add(_passwordFile);
        command.Add(_keys);
        command.Add(_bytes);
        command.Add(_operations);
        command.Add(Disabled);
    }

    public IReadOnlyList<string>? RolesOf(CommandCall call) => ListOf(call, _roles);

    public IReadOnlyList<string>? CertificateNamesOf(CommandCall call) => ListOf(call, _certificateNames);

    /// <summary>The password from the file; null: no file is named.</summary>
    public string? PasswordOf(CommandCall call) =>
        call.Get(_passwordFile) is { } path ? Secret.Read("--new-password-file", path) : null;

    /// <summary>An option of the quota is given.</summary>
    public bool HasQuota(CommandCall call) =>
        call.Get(_keys) is not null || call.Get(_bytes) is not null || call.Get(_operations) is not null;

    /// <summary>The quota with what the options change; null: none is given.</summary>
    /// <exception cref="CliException">A number is too large.</exception>
    public UserQuota? QuotaOf(CommandCall call, UserQuota before) => !HasQuota(call) ? null : before with
    {
        Keys = call.Get(_keys) ?? before.Keys,
        Bytes = call.Get(_bytes) ?? before.Bytes,
        OperationsPerSecond = call.Get(_operations) is not { } operations ? before.OperationsPerSecond
            : operations <= int.MaxValue ? (int)operations
            : throw new CliException($"--quota-operations: {operations} is more than any node carries out."),
    };

    /// <summary>Null: not given. Empty texts are left out, so that one alone stands for an empty list.</summary>
    private static string[]? ListOf(CommandCall call, Option<string[]> option) =>
        call.Get(option) is { Length: > 0 } given ? [.. given.Where(static text => text.Length > 0)] : null;
}
