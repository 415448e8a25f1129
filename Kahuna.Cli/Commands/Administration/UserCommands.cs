using System.CommandLine;
using Kahuna.Cli.Commands.Inputs;
using Kahuna.Cli.Connecting;
using Kahuna.Cli.Errors;
using Kahuna.Cli.Results;
using Kahuna.Client.Administration;

namespace Kahuna.Cli.Commands.Administration;

/// <summary><c>user</c>: who may sign in. Static.</summary>
internal static class UserCommands
{
    public static CliCommand Create() => new("user", "Create, show, change and delete users; needs the right admin")
    {
        New(), Get(), List(), Update(), Delete(),
    };

    private static CliCommand New()
    {
        Argument<string> name = Name();
        UserOptions options = new();
        Option<bool> noPassword = Given.Flag(
            "--no-password", "The user signs in with tokens or certificates only; no password is asked for");
        CliCommand command = new("create", "Create a user; its password is asked for or in a file", async call =>
        {
            string? password = call.Get(noPassword) ? null
                : options.PasswordOf(call) ?? NewPassword(call, call.Get(name));
            KahunaUser user = new()
            {
                Name = call.Get(name),
                Roles = options.RolesOf(call) ?? [],
                CertificateNames = options.CertificateNamesOf(call) ?? [],
                Quota = options.QuotaOf(call, UserQuota.None) ?? UserQuota.None,
                IsDisabled = call.Get(options.Disabled) ?? false,
            };
            AdminClient admin = await AdminOf(call).ConfigureAwait(false);
            call.Output.Write(
                RecordOf(await admin.CreateUserAsync(user, password, call.Stop).ConfigureAwait(false)), "created");
            return ExitCode.Done;
        })
        {
            name,
        };
        options.AddTo(command);
        command.Add(noPassword);
        return command;
    }

    private static CliCommand Get()
    {
        Argument<string> name = Name();
        return new CliCommand("get", "Show a user", async call =>
        {
            AdminClient admin = await AdminOf(call).ConfigureAwait(false);
            call.Output.Write(RecordOf(await admin.GetUserAsync(call.Get(name), call.Stop).ConfigureAwait(false)));
            return ExitCode.Done;
        })
        {
            name,
        };
    }

    private static CliCommand List() => new("list", "List users", async call =>
    {
        AdminClient admin = await AdminOf(call).ConfigureAwait(false);
        await call.Output.WriteAllAsync(
            ["name", "roles", "certificateNames", "disabled", "password", "quota", "usage"],
            admin.ListUsersAsync(call.Stop).Select(RecordOf)).ConfigureAwait(false);
        return ExitCode.Done;
    });

    private static CliCommand Update()
    {
        Argument<string> name = Name();
        UserOptions options = new();
        Option<string> rename = Given.Text("--rename", "name", "Another name");
        Option<bool> askPassword = Given.Flag("--password", "Ask for a new password, which ends what was open");
        CliCommand command = new("update", "Change a user; what no option names stays", async call =>
        {
            AdminClient admin = await AdminOf(call).ConfigureAwait(false);
            UserQuota? before = options.HasQuota(call)
                ? (await admin.GetUserAsync(call.Get(name), call.Stop).ConfigureAwait(false)).Quota
                : null;
            UserChange change = new()
            {
                Name = call.Get(rename),
                Roles = options.RolesOf(call),
                CertificateNames = options.CertificateNamesOf(call),
                Quota = before is null ? null : options.QuotaOf(call, before),
                IsDisabled = call.Get(options.Disabled),
                Password = options.PasswordOf(call)
                    ?? (call.Get(askPassword) ? NewPassword(call, call.Get(name)) : null),
            };
            KahunaUser changed = await admin.UpdateUserAsync(call.Get(name), change, call.Stop).ConfigureAwait(false);
            call.Output.Write(RecordOf(changed), "updated");
            return ExitCode.Done;
        })
        {
            name, rename, askPassword,
        };
        options.AddTo(command);
        return command;
    }

    private static CliCommand Delete()
    {
        Argument<string> name = Name();
        return new CliCommand("delete", "Delete a user; its keys stay", async call =>
        {
            AdminClient admin = await AdminOf(call).ConfigureAwait(false);
            await admin.DeleteUserAsync(call.Get(name), call.Stop).ConfigureAwait(false);
            call.Output.Write(new Record { { "name", call.Get(name) }, { "deleted", true } }, "deleted");
            return ExitCode.Done;
        })
        {
            name,
        };
    }

    /// <summary>The administration of the cluster.</summary>
    internal static async ValueTask<AdminClient> AdminOf(CommandCall call) =>
        (await call.ConnectAsync().ConfigureAwait(false)).Admin;

    internal static Record RecordOf(UserQuota quota) => new()
    {
        { "keys", quota.Keys },
        { "bytes", quota.Bytes },
        { "operationsPerSecond", quota.OperationsPerSecond },
    };

    internal static Record RecordOf(UserUsage usage) => new() { { "keys", usage.Keys }, { "bytes", usage.Bytes } };

    private static Record RecordOf(KahunaUser user) => new()
    {
        { "name", user.Name },
        { "roles", user.Roles },
        { "certificateNames", user.CertificateNames },
        { "disabled", user.IsDisabled },
        { "password", user.HasPassword },
        { "quota", user.Quota == UserQuota.None ? null : RecordOf(user.Quota) },
        { "usage", RecordOf(user.Usage) },
    };

    private static Argument<string> Name() => new("name") { Description = "Name of the user" };

    /// <summary>Asked for twice: nobody sees what is typed.</summary>
    private static string NewPassword(CommandCall call, string user)
    {
        string password = Secret.Ask(call.Environment, $"New password of {user}", "--new-password-file");
        return Secret.Ask(call.Environment, "Again", "--new-password-file") == password
            ? password
            : throw new CliException("The two passwords differ; nothing was changed.");
    }
}
