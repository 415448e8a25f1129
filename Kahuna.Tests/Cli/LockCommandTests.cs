using System.Globalization;
using System.Text.Json;
using Kahuna.Cli.Errors;
using Kahuna.Client;
using Kahuna.Client.Locks;
using Kahuna.Tests.Client;
using Kahuna.Tests.Hosting;

namespace Kahuna.Tests.Cli;

/// <summary>Locks, runs under a lock, and elections, on a real cluster.</summary>
[Collection(CliClusterCollection.Name)]
public sealed class LockCommandTests(CliCluster cluster) : IDisposable
{
    private readonly CliTool _tool = cluster.Tool();
    private readonly TemporaryDirectory _directory = new();

    public void Dispose() => _directory.Dispose();

    [Fact]
    public async Task A_lock_outlives_the_command_until_it_is_released()
    {
        string[] acquire = ["lock", "acquire", "l/kept", "--lease", "1h", "--note", "mine"];
        JsonElement held = (await _tool.RunAsync([.. acquire, "-o", "json"])).Done().Json;
        string owner = held.GetProperty("owner").GetString()!;
        string token = held.GetProperty("token").GetInt64().ToString(CultureInfo.InvariantCulture);
        (await _tool.RunAsync("lock", "acquire", "l/kept")).Ended(ExitCode.NotThere);
        (await _tool.RunAsync("lock", "acquire", "l/kept", "--wait", "1ms")).Ended(ExitCode.NotThere);
        JsonElement found = (await _tool.RunAsync("lock", "get", "l/kept", "-o", "json")).Done().Json;
        Assert.Equal(owner, found.GetProperty("holders")[0].GetProperty("owner").GetString());
        Assert.Equal("mine", found.GetProperty("holders")[0].GetProperty("note").GetString());
        (await _tool.RunAsync("lock", "list", "l/kept")).Done().Shows("l/kept");
        (await _tool.RunAsync("lock", "extend", "l/kept", "--owner", owner, "--token", token)).Done();
        (await _tool.RunAsync("set", "l/row", "1", "--fence", $"l/kept:{token}")).Done();
        string[] release = ["lock", "release", "l/kept", "--owner", owner, "--token", token];
        (await _tool.RunAsync(release)).Done();
        (await _tool.RunAsync("set", "l/row", "2", "--fence", $"l/kept:{token}")).Ended(ExitCode.Refused);
        (await _tool.RunAsync(release)).Ended(ExitCode.NotThere);
        (await _tool.RunAsync("lock", "get", "l/kept")).Ended(ExitCode.NotThere);
    }

    [Fact]
    public async Task A_command_runs_under_the_lock_and_gives_its_exit_code()
    {
        string file = Path.Combine(_directory.Path, "token");
        string script = $"printf %s \"$KAHUNA_FENCING_TOKEN\" >{file}; exit 7";
        (await _tool.RunAsync("lock", "run", "l/run", "--", "sh", "-c", script)).Ended(7);
        Assert.True(long.Parse(await File.ReadAllTextAsync(file), CultureInfo.InvariantCulture) > 0);
        (await _tool.RunAsync("lock", "get", "l/run")).Ended(ExitCode.NotThere);
        (await _tool.RunAsync("lock", "run", "l/run", "--", "/no/such/program")).Ended(ExitCode.Usage)
            .Tells("There is no program '/no/such/program'");
        (await _tool.RunAsync("lock", "run", "l/run", "ls", "-la")).Ended(ExitCode.Usage);
    }

    [Fact]
    public async Task A_command_does_not_run_while_another_has_the_lock()
    {
        await using KahunaClient other = Other();
        await using LockHandle? held = await other.Locks.TryAcquireAsync("l/busy", TimeSpan.FromMinutes(30));
        Assert.NotNull(held);
        string file = Path.Combine(_directory.Path, "ran");
        (await _tool.RunAsync("lock", "run", "l/busy", "--", "touch", file)).Ended(ExitCode.NotThere);
        Assert.False(File.Exists(file));
    }

    [Theory]
    [InlineData("trap '' TERM; while :; do sleep 1; done", "50ms")]
    [InlineData("while :; do sleep 1; done", "20min")]
    public async Task A_command_ends_when_its_lock_is_lost(string script, string grace)
    {
        string file = Path.Combine(_directory.Path, "begun");
        Task<CliResult> run = _tool.RunAsync(
            "lock", "run", "l/lost", "--lease", "1s", "--grace", grace, "--", "sh", "-c", $"touch {file}; {script}");
        await Wait.UntilAsync(() => File.Exists(file) || run.IsCompleted);
        await using KahunaClient other = Other();

        // An administrator frees the lock: its holder learns of it when it renews the lease.
        if (await other.Locks.GetAsync("l/lost") is { } held)
        {
            await other.Locks.ReleaseAsync("l/lost", held.Holders[0].Owner, held.Holders[0].Token);
        }

        CliResult result = await run.WaitAsync(LastNet.Span);
        Assert.Equal(ExitCode.Refused, result.ExitCode);
        result.Tells("lost");
    }

    [Fact]
    public async Task An_interrupted_run_ends_its_command_and_frees_the_lock()
    {
        string file = Path.Combine(_directory.Path, "begun");
        using CancellationTokenSource stop = new();
        Task<CliResult> run = _tool.RunAsync(
            ["lock", "run", "l/stop", "--", "sh", "-c", $"touch {file}; while :; do sleep 1; done"], "", stop.Token);
        await Wait.UntilAsync(() => File.Exists(file));
        await stop.CancelAsync();
        Assert.Equal(ExitCode.Interrupted, (await run.WaitAsync(LastNet.Span)).ExitCode);
        (await _tool.RunAsync("lock", "get", "l/stop")).Ended(ExitCode.NotThere);
    }

    [Fact]
    public async Task A_leader_runs_its_command_and_observers_see_it()
    {
        string file = Path.Combine(_directory.Path, "lead");
        using CancellationTokenSource stop = new();
        Task<CliResult> run = _tool.RunAsync(
            [
                "elect", "run", "l/elect", "--candidate", "node-7", "--",
                "sh", "-c", $"touch {file}; while :; do sleep 1; done",
            ],
            "",
            stop.Token);
        await Wait.UntilAsync(() => File.Exists(file));
        string[] observe = ["elect", "observe", "l/elect", "--count", "1", "-o", "jsonl"];
        JsonElement leader = (await _tool.RunAsync(observe)).Done().Json;
        Assert.Equal("node-7", leader.GetProperty("leader").GetString());
        await stop.CancelAsync();
        await run.WaitAsync(LastNet.Span);
        leader = (await _tool.RunAsync(observe)).Done().Json;
        Assert.Equal(JsonValueKind.Null, leader.GetProperty("leader").ValueKind);
    }

    private KahunaClient Other() => KahunaClient.Connect(cluster.Endpoints, static options =>
    {
        options.Credentials = KahunaCredentials.Password("root", "rootroot");
        options.RequestTimeout = LastNet.Call;
    });
}
