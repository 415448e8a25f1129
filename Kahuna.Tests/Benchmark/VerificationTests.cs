using Kahuna.Benchmark.CommandLine;
using Kahuna.Benchmark.Targets;
using Kahuna.Benchmark.Targets.Sdk;
using Kahuna.Benchmark.Verification;
using Kahuna.Benchmark.Workloads;
using Kahuna.Client;
using Kahuna.Tests.Client;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Benchmark;

/// <summary>
/// What <c>--verify</c> concludes from what the workers got: every broken promise is counted, and ends the run with 3.
/// </summary>
public sealed class VerificationTests
{
    [Fact]
    public void A_sequence_without_faults_is_verified()
    {
        SequenceFindings findings = Sequence(before: 10, after: 14, (11, 0, 5), (12, 1, 6), (14, 2, 7), (13, 2, 8));
        Assert.True(findings.IsGood);
        Assert.Equal("verified: 4 values, 0 duplicates, 0 gaps, 0 out of order", findings.ToString());
    }

    [Fact]
    public void A_value_that_comes_twice_or_was_handed_out_before_is_a_duplicate()
    {
        Assert.Equal(1, Sequence(0, 2, (1, 0, 1), (2, 2, 3), (2, 2, 4)).Duplicates);
        Assert.Equal(1, Sequence(5, 6, (5, 0, 1), (6, 2, 3)).Duplicates);
    }

    [Fact]
    public void A_value_that_nobody_got_is_a_gap_also_at_the_end()
    {
        SequenceFindings inside = Sequence(0, 3, (1, 0, 1), (3, 2, 3));
        Assert.Equal((1, false), (inside.Gaps, inside.IsGood));
        Assert.Equal(2, Sequence(0, 3, (1, 0, 1)).Gaps);
        Assert.Equal(0, Sequence(0, null, (1, 0, 1)).Gaps);
    }

    [Fact]
    public void A_gap_is_excused_by_a_call_of_unknown_end_and_only_by_as_many()
    {
        SequenceLedger ledger = new() { After = 4 };
        SequenceLedger.Page page = ledger.Open();
        page.Begin();
        page.Got(new SequenceLedger.Entry(1, 0, 1));
        page.Begin();
        ledger.Open().Begin();
        SequenceFindings findings = ledger.Check();
        Assert.Equal((2, 2, 1), (findings.Unknown, findings.Excused, findings.Gaps));
    }

    [Fact]
    public void A_value_below_one_that_came_before_it_was_asked_for_is_out_of_order()
    {
        SequenceFindings findings = Sequence(0, 2, (2, 0, 1), (1, 2, 3));
        Assert.Equal((1, false), (findings.Disorder, findings.IsGood));
        Assert.Equal(0, Sequence(0, 2, (2, 0, 3), (1, 2, 4)).Disorder);
    }

    [Fact]
    public void Locks_without_faults_are_verified()
    {
        LockFindings findings = Locks(("a", 1, 0, 1, 5), ("a", 2, 1, 5, 9), ("b", 1, 0, 2, 8));
        Assert.True(findings.IsGood);
        Assert.StartsWith("verified: 3 grants, 0 with two holders", findings.ToString(), StringComparison.Ordinal);
    }

    [Fact]
    public void Two_holders_at_a_time_are_counted()
    {
        LockFindings findings = Locks(("a", 1, 0, 1, 5), ("a", 2, 1, 4, 9));
        Assert.Equal((1, false), (findings.Overlaps, findings.IsGood));
        Assert.StartsWith("VIOLATION: ", findings.ToString(), StringComparison.Ordinal);
    }

    [Fact]
    public void Tokens_that_come_twice_or_go_back_are_counted()
    {
        Assert.Equal(1, Locks(("a", 1, 0, 1, 2), ("a", 1, 3, 4, 5)).Duplicates);
        LockFindings back = Locks(("a", 2, 0, 1, 2), ("a", 1, 3, 4, 5));
        Assert.Equal((1, false), (back.Disorder, back.IsGood));
    }

    [Fact]
    public void A_lease_that_ended_early_is_no_good()
    {
        LockLedger ledger = new();
        ledger.LostEarly();
        Assert.Equal((1, false), (ledger.Check().EndedEarly, ledger.Check().IsGood));
    }

    [Fact]
    public async Task A_violation_ends_the_run_with_3_and_is_in_the_report()
    {
        FakeTarget target = new() { WrongValue = 2 };
        const string Line = "-c a --workload sequence --verify --warmup 0 --concurrency 1 --format json";
        BenchOutcome outcome = await BenchOutcome.RunLongEnoughAsync(target, Line, outcome => outcome.ExitCode == 3);
        Assert.Equal(3, outcome.ExitCode);
        Assert.False(outcome.Json.GetProperty("verified").GetProperty("good").GetBoolean());
        Assert.Equal(1, outcome.Json.GetProperty("verified").GetProperty("duplicates").GetInt64());
    }

    [Fact]
    public async Task A_cluster_that_grants_a_lock_to_everybody_is_found_out()
    {
        FakeCluster cluster = new();
        int grants = 0;
        cluster[1].Answer = request => new FakeReply(
            OutcomeStatus.Applied,
            request.Kind == CommandKind.LockAcquire ? Interlocked.Increment(ref grants) : request.Token,
            50_000 + request.LeaseMs);
        await using KahunaClient client = await cluster.ConnectedAsync();
        BenchCommand command = BenchLine.Read("-c a --workload lock --verify --key-space 1");
        WorkloadRun run = command.Workload.Begin(command.Options);
        await Task.WhenAll(Enumerable.Range(0, 8).Select(async _ =>
        {
            Requester requester = run.Open(new KahunaSession(client));
            for (int i = 0; i < 20; i++)
            {
                Assert.Equal(OperationResult.Success, await requester.SendAsync(default));
            }
        }));
        LockFindings findings = Assert.IsType<LockFindings>(await run.VerifyAsync(new FakeTarget()));
        Assert.Equal((160, 0, 0), (findings.Grants, findings.Duplicates, findings.Unknown));
        Assert.InRange(findings.Overlaps, 20, 160);
        Assert.False(findings.IsGood);
    }

    private static SequenceFindings Sequence(
        long before, long? after, params ReadOnlySpan<(long Value, long Start, long Came)> entries)
    {
        SequenceLedger ledger = new() { Before = before, After = after };
        foreach ((long value, long start, long came) in entries)
        {
            SequenceLedger.Page page = ledger.Open();
            page.Begin();
            page.Got(new SequenceLedger.Entry(value, start, came));
        }

        return ledger.Check();
    }

    private static LockFindings Locks(
        params ReadOnlySpan<(string Name, long Token, long Start, long Came, long Until)> entries)
    {
        LockLedger ledger = new();
        foreach ((string name, long token, long start, long came, long until) in entries)
        {
            LockLedger.Page page = ledger.Open();
            page.Begin();
            page.Got(new LockLedger.Entry(name, token, start, came, until));
        }

        return ledger.Check();
    }
}
