using System.CommandLine;
using Kahuna.Cli.Commands.Inputs;
using Kahuna.Cli.Commands.Running;
using Kahuna.Cli.Errors;
using Kahuna.Cli.Results;
using Kahuna.Client.Elections;

namespace Kahuna.Cli.Commands.Locks;

/// <summary><c>elect</c>: elections of a leader. Static.</summary>
internal static class ElectCommands
{
    public static CliCommand Create() => new("elect", "Campaign for a leadership, or follow who leads")
    {
        Run(), Observe(),
    };

    private static CliCommand Run()
    {
        Argument<string> name = Name();
        Option<string> candidate = Given.Text(
            "--candidate", "text", "What observers see; the name of the machine when it is left out");
        RunOptions run = new();
        LevelOption level = new();
        CliCommand command = new("run", "Wait for the leadership, then run a command while leading", async call =>
        {
            ElectionClient elections = (await call.ConnectAsync().ConfigureAwait(false)).Elections;
            Leadership leadership = await elections.CampaignAsync(
                call.Get(name), call.Get(candidate) ?? Environment.MachineName, run.LeaseOf(call), level.Of(call),
                call.Stop).ConfigureAwait(false);
            await using (leadership.ConfigureAwait(false))
            {
                HeldRun held = new(call, $"leadership '{leadership.Name}'", leadership.LostToken)
                {
                    Grace = run.GraceOf(call),
                };
                return await held.RunAsync(call.Get(run.Words), leadership.Name, leadership.Token)
                    .ConfigureAwait(false);
            }
        })
        {
            name,
        };
        run.AddTo(command);
        command.Add(candidate);
        command.Add(level);
        return command;
    }

    private static CliCommand Observe()
    {
        Argument<string> name = Name();
        Option<long?> count = Given.Number("--count", "End after this many lines; 1 shows who leads now", min: 1);
        LevelOption level = new();
        return new CliCommand("observe", "Show who leads, and each change", async call =>
        {
            IAsyncEnumerable<Record> leaders = (await call.ConnectAsync().ConfigureAwait(false)).Elections
                .ObserveAsync(call.Get(name), level.Of(call), call.Stop)
                .Select(leader => new Record
                {
                    { "name", call.Get(name) },
                    { "leader", leader?.Candidate },
                    { "token", leader?.Token.Value },
                });
            if (call.Get(count) is { } most)
            {
                leaders = leaders.Take((int)Math.Min(most, int.MaxValue));
            }

            await call.Output.WriteAllAsync(["name", "leader", "token"], leaders, isLive: true).ConfigureAwait(false);
            return ExitCode.Done;
        })
        {
            name, count, level,
        };
    }

    private static Argument<string> Name() => new("name") { Description = "Name of the election" };
}
