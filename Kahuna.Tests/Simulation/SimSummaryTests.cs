using Kahuna.Tests.Simulation.Engine;

namespace Kahuna.Tests.Simulation;

/// <summary>What a set of seeds says of itself: what it proved, what happened in it, and how it is run again.</summary>
public sealed class SimSummaryTests
{
    /// <summary>Faults that no event after them tells of.</summary>
    private static readonly FaultClass[] s_silent =
    [
        FaultClass.SlowSync,
        FaultClass.DiskHang,
        FaultClass.SyncError,
        FaultClass.FullDisk,
        FaultClass.FlippedBit,
        FaultClass.ClockDrift,
        FaultClass.ClockJump,
        FaultClass.Partition,
        FaultClass.OneWayCut,
        FaultClass.LeaderCut,
        FaultClass.DeafLeader,
        FaultClass.Clog,
        FaultClass.LateAnswers,
    ];

    [Theory]
    [InlineData(10, 0)]
    [InlineData(11, 1)]
    public void Keys_that_are_undecided_prove_nothing(int undecided, int missed)
    {
        SimSummary summary = new(SimOptions.Parse(["--seeds", "1..100", "--seconds", "10"], out _)!);
        for (ulong seed = 1; seed <= 100; seed++)
        {
            summary.Add(Result(seed) with { Keys = 10, Undecided = seed <= (ulong)undecided ? 1 : 0 });
        }

        Assert.Equal(missed, summary.Missed.Count);
        Assert.All(summary.Missed, static words => Assert.Equal("11 of 1000 keys are undecided", words));
    }

    [Theory]
    [InlineData("", "scripts/sim.sh --seed 7 --seconds 60")]
    [InlineData("--mutant vote-given-twice", "scripts/sim.sh --mutant vote-given-twice --seed 7 --seconds 60")]
    public void A_seed_is_replayed_with_the_planted_bug_that_it_ran_with(string more, string expected)
    {
        SimOptions options = SimOptions.Parse(
            ["--seed", "7", "--seconds", "60", .. more.Split(' ', StringSplitOptions.RemoveEmptyEntries)], out _)!;
        Assert.Equal(expected, SimCommand.Command(Result(7), options));
    }

    [Fact]
    public void A_story_says_what_each_fault_was_done_to()
    {
        HashSet<FaultClass> told = [];
        for (ulong seed = 1; seed <= 200 && told.Count < s_silent.Length; seed++)
        {
            using StringWriter trace = new();
            SimRun.Run(seed, 6, trace);
            foreach (string line in trace.ToString().Split('\n').Where(
                static line => line.Contains($" {SimEvent.Fault} ", StringComparison.Ordinal)))
            {
                // The number of the fault, that of its class, and the words.
                string[] words = line.Split(' ', StringSplitOptions.RemoveEmptyEntries);
                int at = Array.FindIndex(words, static word => Enum.GetNames<FaultClass>().Contains(word));
                if (s_silent.Contains(Enum.Parse<FaultClass>(words[at])))
                {
                    Assert.True(words.Length > at + 2 && words[at + 1] == "of", line);
                    told.Add(Enum.Parse<FaultClass>(words[at]));
                }
            }
        }

        Assert.Equal(s_silent.Order(), told.Order());
    }

    private static SimResult Result(ulong seed) => new()
    {
        Seed = seed,
        VirtualSeconds = 10,
        RealSeconds = 1,
        Events = 1,
        Hash = 1,
        LeaderChanges = 1,
        Crashes = 1,
        Faults = new Dictionary<string, long>(),
        Operations = new Dictionary<string, long>(),
    };
}
