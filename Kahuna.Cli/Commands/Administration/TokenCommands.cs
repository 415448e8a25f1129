using System.CommandLine;
using System.Text;
using Kahuna.Cli.Commands.Inputs;
using Kahuna.Cli.Connecting;
using Kahuna.Cli.Errors;
using Kahuna.Cli.Results;
using Kahuna.Client.Administration;

namespace Kahuna.Cli.Commands.Administration;

/// <summary><c>token</c> and <c>whoami</c>: tokens for services, and who this client is. Static.</summary>
internal static class TokenCommands
{
    public static CliCommand Create() => new("token", "Create, list and revoke tokens; needs the right admin")
    {
        New(), List(), Delete(),
    };

    public static CliCommand WhoAmI() => new("whoami", "Show who this client is to the cluster", async call =>
    {
        AdminClient admin = await UserCommands.AdminOf(call).ConfigureAwait(false);
        Identity identity = await admin.WhoAmIAsync(call.Stop).ConfigureAwait(false);
        call.Output.Write(new Record
        {
            { "user", identity.User.Length == 0 ? null : identity.User },
            { "method", identity.Method },
            { "roles", identity.Roles },
            { "grants", identity.Grants.Select(GrantText.Of).ToArray() },
            { "quota", identity.Quota == UserQuota.None ? null : UserCommands.RecordOf(identity.Quota) },
            { "usage", UserCommands.RecordOf(identity.Usage) },
        });
        return ExitCode.Done;
    });

    private static CliCommand New()
    {
        Argument<string> user = new("user") { Description = "The user that signs in with the token" };
        Option<TimeSpan?> lifetime = Given.Time("--lifetime", "How long it is valid, such as 30d; without it for ever");
        Option<string> note = Given.Text("--note", "text", "Text that the list shows");
        Option<string> file = Given.Text(
            "--secret-file", "file", "New file for the token, for its owner only; without it the token is printed");
        return new CliCommand("create", "Create a token; the cluster does not show it again", async call =>
        {
            string? path = call.Get(file);
            if (path is not null && File.Exists(path))
            {
                throw new CliException($"--secret-file: '{path}' exists already. Name a new file.");
            }

            AdminClient admin = await UserCommands.AdminOf(call).ConfigureAwait(false);
            NewToken token = await admin.CreateTokenAsync(
                call.Get(user),
                new TokenOptions { Lifetime = call.Get(lifetime), Note = call.Get(note) ?? "" },
                call.Stop).ConfigureAwait(false);
            if (path is not null)
            {
                PrivateFile.Create(path, Encoding.UTF8.GetBytes(token.Secret + "\n"));
            }

            Record record = RecordOf(token.Token);
            record.Add(path is null ? "secret" : "secretFile", path ?? token.Secret);
            call.Output.Write(record);
            return ExitCode.Done;
        })
        {
            user, lifetime, note, file,
        };
    }

    private static CliCommand List()
    {
        Argument<string?> user = new("user")
        {
            Description = "Only tokens of this user",
            Arity = ArgumentArity.ZeroOrOne,
        };
        return new CliCommand("list", "List tokens", async call =>
        {
            AdminClient admin = await UserCommands.AdminOf(call).ConfigureAwait(false);
            await call.Output.WriteAllAsync(
                ["id", "user", "created", "expires", "note"],
                admin.ListTokensAsync(call.Parsed.GetValue(user), call.Stop).Select(RecordOf)).ConfigureAwait(false);
            return ExitCode.Done;
        })
        {
            user,
        };
    }

    private static CliCommand Delete()
    {
        Argument<string> id = new("id") { Description = "Id of the token, as the list shows it" };
        return new CliCommand("delete", "Revoke a token, which ends what it has open", async call =>
        {
            AdminClient admin = await UserCommands.AdminOf(call).ConfigureAwait(false);
            await admin.RevokeTokenAsync(call.Get(id), call.Stop).ConfigureAwait(false);
            call.Output.Write(new Record { { "id", call.Get(id) }, { "deleted", true } }, "deleted");
            return ExitCode.Done;
        })
        {
            id,
        };
    }

    private static Record RecordOf(AccessToken token) => new()
    {
        { "id", token.Id },
        { "user", token.User },
        { "created", token.CreatedAt },
        { "expires", token.ExpiresAt },
        { "note", token.Note },
    };
}
