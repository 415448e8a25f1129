using System.CommandLine;
using System.Globalization;
using Kahuna.Server.Hosting.Options;

namespace Kahuna.Server.Hosting.Administration;

/// <summary>
/// <c>kahuna-server recover-admin</c>: leaves a request to recover an administrator in the data directory of a stopped
/// node (docs/adr/0047-lost-administrator.md). Stateless.
/// </summary>
internal static class RecoverAdminCommand
{
    /// <summary>The verb.</summary>
    public const string Name = "recover-admin";

    private static readonly Option<string> s_data = new("--data")
    {
        Description = "Data directory of a node that does not run.",
        HelpName = "directory",
        Required = true,
    };

    private static readonly Option<string?> s_user = new("--user")
    {
        Description = "Name of the administrator: an existing user, which keeps its roles, or a new one.",
        HelpName = "name",
    };

    private static readonly Option<string?> s_password = new("--password-file")
    {
        Description = "File with the new password, which only its owner may be able to read. -: standard input.",
        HelpName = "file",
    };

    private static readonly Option<string?> s_request = new("--request")
    {
        Description = "The request that was made for another node of the cluster: a copy of its file "
            + RecoveryRequest.FileName + ". Instead of --user and --password-file.",
        HelpName = "file",
    };

    /// <summary>Runs it. The exit code is 0 when the request is in place; reasons go to standard error.</summary>
    public static async Task<int> RunAsync(string[] args)
    {
        RootCommand command = new(
            "Asks for a new password of an administrator, of a node that does not run. A majority of the nodes has to "
                + "ask for the same within an hour.");
        foreach (Option option in (Option[])[s_data, s_user, s_password, s_request])
        {
            command.Options.Add(option);
        }

        command.SetAction(Leave);
        return await command.Parse(args, new ParserConfiguration { ResponseFileTokenReplacer = null })
            .InvokeAsync().ConfigureAwait(false);
    }

    private static int Leave(ParseResult parsed)
    {
        try
        {
            string directory = Path.GetFullPath(parsed.GetRequiredValue(s_data));
            string? user = parsed.GetValue(s_user);
            string? password = parsed.GetValue(s_password);
            string? request = parsed.GetValue(s_request);
            bool isNew = user is not null && password is not null && request is null;
            if (!isNew && (request is null || user is not null || password is not null))
            {
                return Fail("Give either --user and --password-file, or --request with the request of another node.");
            }

            // Looked at before it is locked, which would make a directory that does not exist.
            if (!File.Exists(Path.Combine(directory, DataDirectoryIdentity.FileName)))
            {
                return Fail($"{directory} is no data directory of a node: it has no {DataDirectoryIdentity.FileName}.");
            }

            using IDisposable held = DataDirectoryIdentity.Hold(directory);
            DataDirectoryIdentity identity = DataDirectoryIdentity.TryRead(directory)
                ?? throw new InvalidDataException($"{directory} is no data directory any longer.");
            RecoveryRequest made = isNew
                ? New(identity.ClusterId, user!, password!)
                : RecoveryRequest.Read(request!, identity.ClusterId);
            if (!RecoveryRequest.IsRecent(made.MadeMs, DateTimeOffset.UtcNow))
            {
                return Fail("The request is older than an hour, or from the future; make a new one.");
            }

            made.Write(directory);
            Console.WriteLine(Next(directory, identity.Voters.Ids.Count, isNew));
            return 0;
        }
        catch (Exception error) when (
            error is InvalidDataException or IOException or UnauthorizedAccessException or DataDirectoryException)
        {
            return Fail(error.Message);
        }
    }

    private static RecoveryRequest New(string clusterId, string user, string passwordFile)
    {
        string password = BootstrapFile.ReadPassword(passwordFile, Console.OpenStandardInput);
        return FirstAdministrator.Objection(user, password) is { } objection
            ? throw new InvalidDataException(objection)
            : RecoveryRequest.New(clusterId, user, password, DateTimeOffset.UtcNow);
    }

    private static string Next(string directory, int nodes, bool isNew)
    {
        string path = Path.Combine(directory, RecoveryRequest.FileName);
        return nodes == 1 ? "The request is in place. Start the node: it carries the request out."
            : string.Create(
                CultureInfo.InvariantCulture,
                $"The request is in place. {(isNew ? $"Copy {path} to other nodes and leave it there with --request, "
                    + "so that" : "When")} {(nodes / 2) + 1} of the {nodes} nodes have it, and have been started again "
                    + $"within an hour, the password holds.");
    }

    private static int Fail(string reason)
    {
        Console.Error.WriteLine($"kahuna-server {Name}: {OneLine.Of(reason)}");
        return 1;
    }
}
