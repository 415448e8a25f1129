using System.Text.Json;
using Kahuna.Tests.Simulation.Engine;
using Kahuna.Tests.Simulation.Faults;

namespace Kahuna.Tests.Simulation;

/// <summary>What makes a seed worth keeping: that it replays.</summary>
public sealed class SimulationTests
{
    [Theory]
    [InlineData(3)]
    [InlineData(17)]
    public void Same_seed_is_the_same_run(int seed)
    {
        SimResult first = SimRun.Run((ulong)seed, 20);
        SimResult second = SimRun.Run((ulong)seed, 20);
        Assert.True(first.Events > 1_000);
        Assert.Equal(
            (first.Hash, first.Events, first.LeaderChanges), (second.Hash, second.Events, second.LeaderChanges));
        Assert.NotEqual(first.Hash, SimRun.Run((ulong)seed + 1, 20).Hash);
    }

    [Fact]
    public void Each_class_of_faults_is_off_in_half_of_the_seeds()
    {
        SimConfig[] drawn =
        [
            .. Enumerable.Range(1, 1_300)
                .Select(static seed => SimConfig.Draw((ulong)seed, 120))
                .Where(static config => config.Hostile.Count == 0)
                .Take(1_000),
        ];
        Assert.All(Enum.GetValues<FaultClass>(), kind =>
            Assert.InRange(drawn.Count(config => config.Classes.Contains(kind)), 430, 570));
        Assert.Equal(7, drawn.Select(static config => config.Nodes).Distinct().Count());
    }

    [Fact]
    public void Faults_of_a_seed_can_be_left_out_one_by_one()
    {
        SimConfig config = Enumerable.Range(5, 50)
            .Select(static seed => SimConfig.Draw((ulong)seed, 40))
            .First(static config => FaultPlan.Draw(config).Count > 2);
        IReadOnlyList<Fault> faults = FaultPlan.Draw(config);
        Assert.Equal(faults, FaultPlan.Draw(config));
        SimResult all = SimRun.Run(config.Seed, 40);
        Assert.NotEqual(all.Hash, SimRun.Run(config.Seed, 40, without: new HashSet<int> { faults[0].Number }).Hash);
    }

    [Fact]
    public void Minimizing_leaves_only_the_faults_that_are_needed()
    {
        static string? Rule(SimCluster cluster) =>
            cluster.Faults.Fired[(int)FaultClass.Kill] > 0 && cluster.Faults.Fired[(int)FaultClass.ClockJump] > 0
                ? "somebody was killed, and a clock jumped"
                : null;
        SimResult failed = Enumerable.Range(1, 100)
            .Select(static seed => SimRun.Run((ulong)seed, 40, rule: Rule))
            .First(static result => result.Violation is not null);
        IReadOnlyList<Fault> faults = FaultPlan.Draw(SimConfig.Draw(failed.Seed, 40));
        IReadOnlyList<int> needed = SimRun.Minimize(failed, 40, Rule);
        Assert.True(failed.Violation!.Faults.Count > 2);
        SimResult replayed = SimRun.Run(failed.Seed, 40, without: SimRun.AllBut(failed.Seed, 40, needed), rule: Rule);
        Assert.Equal(failed.Violation.Rule, replayed.Violation?.Rule);
        Assert.Contains(replayed.Violation!.Story, static line => line.Contains("is killed", StringComparison.Ordinal));
        Assert.Equal(
            [FaultClass.Kill, FaultClass.ClockJump],
            needed.Select(number => faults.Single(fault => fault.Number == number).Class).Order());
    }

    [Fact]
    public void Same_seeds_are_the_same_runs_in_another_process()
    {
        string[] hashes = [HashOf("1"), HashOf("2")];
        SimOptions options = SimOptions.Parse(["--seeds", "1..20", "--seconds", "20"], out _)!;
        string here =
            JsonDocument.Parse(SimCommand.Work(options, null, TextWriter.Null).ToJson()).RootElement.GetProperty(
            "eventLogHash")
            .GetString()!;
        Assert.Equal([here, here], hashes);
    }

    [Fact]
    public void Code_that_leaves_the_run_is_seen()
    {
        SimScheduler scheduler = new(new EventLog(null));
        Thread other = new(() => Assert.Throws<InvalidOperationException>(() => scheduler.After(0, static () => { })));
        other.Start();
        other.Join();
        Assert.NotNull(scheduler.Escaped);
    }

    [Theory]
    [InlineData("--seeds 5..1")]
    [InlineData("--seeds a..b")]
    [InlineData("--seed -1")]
    [InlineData("--seconds 0")]
    [InlineData("--jobs 0")]
    [InlineData("--trace x")]
    [InlineData("--only 1,2")]
    [InlineData("--seed 1 --only a")]
    [InlineData("--hours")]
    [InlineData("--violations 0")]
    [InlineData("--unheard 1")]
    public void Bad_usage_is_refused(string arguments)
    {
        using StringWriter errors = new();
        Assert.Equal(2, SimCommand.Run(arguments.Split(' '), TextWriter.Null, errors));
        Assert.Contains("Usage: scripts/sim.sh", errors.ToString(), StringComparison.Ordinal);
    }

    private static string HashOf(string jobs)
    {
        string file = Path.GetTempFileName();
        try
        {
            using System.Diagnostics.Process process = System.Diagnostics.Process.Start(
                new System.Diagnostics.ProcessStartInfo(
                    "dotnet",
                    [
                        typeof(SimulationTests).Assembly.Location,
                        "sim",
                        "--seeds",
                        "1..20",
                        "--seconds",
                        "20",
                        "--jobs",
                        jobs,
                        "--json",
                        file,
                    ])
                {
                    RedirectStandardOutput = true,
                })!;
            process.StandardOutput.ReadToEnd();
            process.WaitForExit();
            Assert.Equal(0, process.ExitCode);
            return JsonDocument.Parse(File.ReadAllText(file)).RootElement.GetProperty("eventLogHash").GetString()!;
        }
        finally
        {
            File.Delete(file);
        }
    }
}
