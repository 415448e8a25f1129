using System.CommandLine;
using Kahuna.Cli.Commands.Inputs;
using Kahuna.Cli.Errors;
using Kahuna.Cli.Results;
using Kahuna.Client.Administration;

namespace Kahuna.Cli.Commands.Administration;

/// <summary><c>role</c>: what users may do. Static.</summary>
internal static class RoleCommands
{
    public static CliCommand Create() => new("role", "Write, show and delete roles; needs the right admin")
    {
        Put(), Get(), List(), Delete(),
    };

    private static CliCommand Put()
    {
        Argument<string> name = Name();
        Option<string[]> grants = Given.Many(
            "--grant", "grant", "PERMISSIONS:SCOPE:NAME, such as read,write:prefix:app/, or admin; may be repeated");
        return new CliCommand("put", "Create a role, or replace all its grants", async call =>
        {
            KahunaRole role = new(call.Get(name), [.. (call.Get(grants) ?? []).Select(GrantText.Read)]);
            AdminClient admin = await UserCommands.AdminOf(call).ConfigureAwait(false);
            call.Output.Write(
                RecordOf(await admin.PutRoleAsync(role, call.Stop).ConfigureAwait(false)), "written");
            return ExitCode.Done;
        })
        {
            name, grants,
        };
    }

    private static CliCommand Get()
    {
        Argument<string> name = Name();
        return new CliCommand("get", "Show a role", async call =>
        {
            AdminClient admin = await UserCommands.AdminOf(call).ConfigureAwait(false);
            call.Output.Write(RecordOf(await admin.GetRoleAsync(call.Get(name), call.Stop).ConfigureAwait(false)));
            return ExitCode.Done;
        })
        {
            name,
        };
    }

    private static CliCommand List() => new("list", "List roles", async call =>
    {
        AdminClient admin = await UserCommands.AdminOf(call).ConfigureAwait(false);
        await call.Output.WriteAllAsync(["name", "grants"], admin.ListRolesAsync(call.Stop).Select(RecordOf))
            .ConfigureAwait(false);
        return ExitCode.Done;
    });

    private static CliCommand Delete()
    {
        Argument<string> name = Name();
        return new CliCommand("delete", "Delete a role that no user has", async call =>
        {
            AdminClient admin = await UserCommands.AdminOf(call).ConfigureAwait(false);
            await admin.DeleteRoleAsync(call.Get(name), call.Stop).ConfigureAwait(false);
            call.Output.Write(new Record { { "name", call.Get(name) }, { "deleted", true } }, "deleted");
            return ExitCode.Done;
        })
        {
            name,
        };
    }

    private static Record RecordOf(KahunaRole role) => new()
    {
        { "name", role.Name },
        { "grants", role.Grants.Select(GrantText.Of).ToArray() },
    };

    private static Argument<string> Name() => new("name") { Description = "Name of the role" };
}
