using System.Collections.Concurrent;
using System.Diagnostics;
using System.Text.Json;
using Kahuna.Benchmark.Targets;

namespace Kahuna.Tests.Benchmark;

/// <summary>Phases, load modes and what is counted how, against a target in this process.</summary>
public sealed class LoadTests
{
    private const string Endpoint = "-c https://127.0.0.1:8082 --format json ";

    [Fact]
    public async Task Open_loop_sends_at_the_rate_that_was_asked_for()
    {
        JsonElement json = (await BenchOutcome.RunAsync(
            FakeTarget.Yielding(), Endpoint + "--workload set --rate 3001 --duration 1 --warmup 0.2")).Json;
        JsonElement generator = json.GetProperty("generator");

        // The number of requests follows from the schedule alone; only when they finish depends on the machine.
        Assert.InRange(generator.GetProperty("requests").GetInt64(), 3000, 3002);
        Assert.Equal(
            generator.GetProperty("requests").GetInt64(),
            json.GetProperty("aggregate").GetProperty("count").GetInt64());
        double achieved = generator.GetProperty("requests").GetInt64() / json.GetProperty("elapsedSec").GetDouble();
        Assert.InRange(
            generator.GetProperty("achievedRate").GetDouble(), achieved * 0.99, Math.Min(achieved, 3001) * 1.01);
        Assert.Equal(0, generator.GetProperty("backlog").GetInt64());
        Assert.NotEqual(JsonValueKind.Null, generator.GetProperty("scheduleLagMs").ValueKind);
    }

    [Fact]
    public async Task Open_loop_shows_a_stall_at_its_full_size()
    {
        const int StallMs = 500;
        long stalledAt = 0;
        Stopwatch clock = Stopwatch.StartNew();
        FakeTarget target = new(async (_, _, _) =>
        {
            // Half a second into the run every request waits until the stall is over.
            if (clock.ElapsedMilliseconds > 500)
            {
                Interlocked.CompareExchange(ref stalledAt, clock.ElapsedMilliseconds, 0);
                long left = stalledAt + StallMs - clock.ElapsedMilliseconds;
                if (left > 0)
                {
                    await Task.Delay(TimeSpan.FromMilliseconds(left + 1));
                }
            }

            await Task.Yield();
            return OperationResult.Success;
        });

        // Four consumers: a closed loop would have four slow requests of two thousand and show nothing at p99.9.
        JsonElement row =
            (await BenchOutcome.RunAsync(
                target,
                Endpoint + "--workload set --rate 1000 --duration 2 --warmup 0 --concurrency 4")).Json.GetProperty(
            "aggregate");
        Assert.Equal(2000, row.GetProperty("count").GetInt64());

        // A quarter of all requests was due during the stall; the first of them waited for all of it, the last for
        // nothing.
        Assert.InRange(row.GetProperty("p90Ms").GetDouble(), StallMs * 0.5, row.GetProperty("p999Ms").GetDouble());
        Assert.InRange(row.GetProperty("p999Ms").GetDouble(), StallMs * 0.98, row.GetProperty("maxMs").GetDouble());
        Assert.True(row.GetProperty("maxMs").GetDouble() >= StallMs, row.ToString());
    }

    [Fact]
    public async Task Backlog_at_the_deadline_is_drained_and_recorded()
    {
        FakeTarget target = new(async (_, _, _) =>
        {
            await Task.Delay(20);
            return OperationResult.Success;
        });
        JsonElement json = (await BenchOutcome.RunAsync(
            target,
            Endpoint + "--workload set --rate 200 --duration 0.5 --warmup 0 --concurrency 2 --timeout 20")).Json;
        Assert.Equal(100, json.GetProperty("aggregate").GetProperty("count").GetInt64());
        Assert.Equal(0, json.GetProperty("generator").GetProperty("backlog").GetInt64());

        // Two consumers at 20 ms each make at most 100 requests per second: half of what is due, so that the rest takes
        // as long again.
        double elapsed = json.GetProperty("elapsedSec").GetDouble();
        Assert.True(elapsed > 0.9, json.ToString());
        Assert.Equal(json.GetProperty("aggregate").GetProperty("rps").GetDouble(), 100 / elapsed, 1.0);
        Assert.True(json.GetProperty("generator").GetProperty("drainSec").GetDouble() > 0.4);
        Assert.Contains(json.GetProperty("generator").GetProperty("findings").EnumerateArray(), finding =>
            finding.GetString()!.Contains("fell short", StringComparison.Ordinal));
    }

    [Fact]
    public async Task Backlog_that_the_timeout_does_not_drain_is_reported()
    {
        TaskCompletionSource<OperationResult> never = new();
        FakeTarget target = new((_, _, _) => new ValueTask<OperationResult>(never.Task));
        BenchOutcome outcome = await BenchOutcome.RunAsync(
            target, Endpoint + "--workload set --rate 100 --duration 0.2 --warmup 0 --concurrency 3 --timeout 0.2");
        JsonElement generator = outcome.Json.GetProperty("generator");
        Assert.Equal(4, outcome.ExitCode);
        Assert.Equal(20, generator.GetProperty("backlog").GetInt64());
        Assert.Equal(17, generator.GetProperty("notSent").GetInt64());
        Assert.Equal(3, generator.GetProperty("unanswered").GetInt64());
        Assert.Equal(0, outcome.Json.GetProperty("aggregate").GetProperty("count").GetInt64());
        Assert.Contains("note: backlog: 20 requests", outcome.Error, StringComparison.Ordinal);
    }

    [Theory]
    [InlineData("", 0)]
    [InlineData("--max-errors 0", 4)]
    [InlineData("--max-errors 18", 4)]
    [InlineData("--max-errors 19", 0)]
    public async Task Backlog_counts_against_the_errors_that_are_allowed(string more, int expected)
    {
        // One request of twenty is answered.
        int sent = 0;
        TaskCompletionSource<OperationResult> never = new();
        FakeTarget target = new((_, _, _) =>
            Interlocked.Increment(ref sent) == 1
                ? new ValueTask<OperationResult>(OperationResult.Success)
                : new ValueTask<OperationResult>(never.Task));
        BenchOutcome outcome = await BenchOutcome.RunAsync(
            target,
            Endpoint + "--workload set --rate 100 --duration 0.2 --warmup 0 --concurrency 3 --timeout 0.2 " + more);
        Assert.Equal(19, outcome.Json.GetProperty("generator").GetProperty("backlog").GetInt64());
        Assert.Equal(expected, outcome.ExitCode);
        if (expected != 0)
        {
            Assert.Contains(
                $"0 requests failed and 19 were not finished; --max-errors allows {more.Split(' ')[1]}.",
                outcome.Error,
                StringComparison.Ordinal);
        }
    }

    [Fact]
    public async Task Only_successes_count()
    {
        int number = -1;
        FakeTarget target = new(async (operation, _, _) =>
        {
            await Task.Delay(1);
            return (operation, Interlocked.Increment(ref number) % 4) switch
            {
                (FakeCall.Get, 0) => OperationResult.Miss,
                (FakeCall.Set, 1) => throw new TimeoutException("too late"),
                (FakeCall.Set, 2) => throw new InvalidOperationException("no"),
                _ => OperationResult.Success,
            };
        });
        BenchOutcome outcome = await BenchOutcome.RunLongEnoughAsync(
            target,
            "-c a --workload mixed --warmup 0 --concurrency 8 --key-space 1 --format csv",
            _ => Interlocked.Exchange(ref number, -1) > 200);

        // Seeding writes one key and is answered with a success, being the first request.
        string[][] rows =
            [.. outcome.Output.Split('\n', StringSplitOptions.RemoveEmptyEntries).Select(line => line.Split(','))];
        Assert.Equal(["get", "set", "TOTAL"], rows.Skip(1).Select(row => row[0]));
        Assert.True(long.Parse(rows[1][12]) > 0, outcome.Output);
        Assert.Equal("0", rows[1][10]);
        Assert.True(long.Parse(rows[2][10]) > 0, outcome.Output);
        Assert.True(long.Parse(rows[2][11]) > 0, outcome.Output);
        Assert.Equal("0", rows[2][12]);
        for (int column = 10; column <= 12; column++)
        {
            Assert.Equal(long.Parse(rows[3][column]), long.Parse(rows[1][column]) + long.Parse(rows[2][column]));
        }

        Assert.Equal(long.Parse(rows[3][1]), long.Parse(rows[1][1]) + long.Parse(rows[2][1]));
        Assert.Contains("times: too late", outcome.Error, StringComparison.Ordinal);
        Assert.Contains("times: no", outcome.Error, StringComparison.Ordinal);
    }

    [Fact]
    public async Task Warmup_is_not_recorded()
    {
        Stopwatch clock = Stopwatch.StartNew();
        int requests = 0;
        int failed = 0;
        FakeTarget target = new(async (_, _, _) =>
        {
            Interlocked.Increment(ref requests);
            await Task.Delay(1);

            // What fails was begun in the warm-up, however slow the machine is.
            bool fails = clock.ElapsedMilliseconds < 300;
            Interlocked.Add(ref failed, fails ? 1 : 0);
            return fails ? OperationResult.Error : OperationResult.Success;
        });
        JsonElement json = (await BenchOutcome.RunLongEnoughAsync(
            target, Endpoint + "--workload set --warmup 0.6 --concurrency 2", IsEnough)).Json;
        JsonElement row = json.GetProperty("aggregate");
        Assert.Equal(0, row.GetProperty("errors").GetInt64());
        Assert.InRange(row.GetProperty("count").GetInt64(), 1, requests - failed);

        // What was measured began when the warm-up was over.
        Assert.InRange(
            json.GetProperty("elapsedSec").GetDouble(),
            json.GetProperty("parameters").GetProperty("duration").GetDouble(),
            clock.Elapsed.TotalSeconds - 0.6);

        bool IsEnough(BenchOutcome outcome)
        {
            bool enough = outcome.Json.GetProperty("aggregate").GetProperty("count").GetInt64() > 0;
            if (!enough)
            {
                (requests, failed) = (0, 0);
                clock.Restart();
            }

            return enough;
        }
    }

    [Theory]
    [InlineData("set", 0)]
    [InlineData("get", 2000)]
    [InlineData("mixed", 2000)]
    public async Task Reading_workloads_seed_every_key_first(string workload, int expected)
    {
        ConcurrentDictionary<string, bool> seeded = new();
        int writing = 0;
        int writingMax = 0;
        bool reading = false;
        FakeTarget target = new(async (operation, key, value) =>
        {
            reading |= operation == FakeCall.Get;
            if (!reading && operation == FakeCall.Set)
            {
                int now = Interlocked.Increment(ref writing);
                int max;
                while (now > (max = writingMax))
                {
                    Interlocked.CompareExchange(ref writingMax, now, max);
                }

                await Task.Yield();
                Interlocked.Decrement(ref writing);
                Assert.Equal(128, value.Length);
                seeded[key] = true;
            }

            await Task.Yield();
            return OperationResult.Success;
        });
        string more = workload == "mixed" ? " --read-pct 100" : string.Empty;
        BenchOutcome outcome = await BenchOutcome.RunLongEnoughAsync(
            target, $"-c a --workload {workload}{more} --key-space 2000 --warmup 0 --concurrency 200");
        Assert.Equal(0, outcome.ExitCode);
        if (expected > 0)
        {
            Assert.Equal(expected, seeded.Count);
            Assert.InRange(writingMax, 1, 64);
            Assert.Contains("  Seeding 2,000 keys (parallelism=64)…", outcome.Output, StringComparison.Ordinal);
        }
        else
        {
            Assert.DoesNotContain("Seeding", outcome.Output, StringComparison.Ordinal);
        }
    }

    [Theory]
    [InlineData("set", 1500)]
    [InlineData("get", 0)]
    public async Task As_many_keys_are_seeded_as_were_asked_for(string workload, int asked)
    {
        ConcurrentQueue<string> requests = new();
        FakeTarget target = new((operation, key, _) =>
        {
            requests.Enqueue($"{operation} {key}");
            return new ValueTask<OperationResult>(OperationResult.Success);
        });
        BenchOutcome outcome = await BenchOutcome.RunLongEnoughAsync(
            target, $"-c a --workload {workload} --key-space 2000 --seed-keys {asked} --warmup 0 --format json");
        Assert.Equal(0, outcome.ExitCode);
        Assert.Equal(asked, outcome.Json.GetProperty("parameters").GetProperty("seedKeys").GetInt32());
        Assert.Equal(
            Enumerable.Range(0, asked).Select(number => $"Set bench:{number}").Order(), requests.Take(asked).Order());
    }

    [Theory]
    [InlineData("", 0, 4, "no request was answered")]
    [InlineData("--max-errors 1000000000", 0, 4, "no request was answered")]
    [InlineData("", 2, 0, "")]
    [InlineData("--max-errors 0", 2, 4, "requests failed; --max-errors allows 0.")]
    [InlineData("--max-errors 1000000000", 2, 0, "")]
    [InlineData("--max-errors 0", 1, 0, "")]
    public async Task Run_whose_requests_fail_says_so_by_its_exit_code(
        string more, int goodOf, int expected, string sentence)
    {
        // Of goodOf requests one is answered: none with 0, all with 1.
        int sent = 0;
        FakeTarget target = new(async (_, _, _) =>
        {
            await Task.Yield();
            return goodOf > 0 && Interlocked.Increment(ref sent) % goodOf == 0
                ? OperationResult.Success
                : throw new InvalidOperationException("refused");
        });
        BenchOutcome outcome = await BenchOutcome.RunLongEnoughAsync(
            target, Endpoint + "--workload set --warmup 0 --concurrency 2 " + more, outcome => RequestsOf(outcome) > 3);
        Assert.Equal(expected, outcome.ExitCode);
        Assert.Contains(sentence, outcome.Error, StringComparison.Ordinal);

        static long RequestsOf(BenchOutcome outcome)
        {
            JsonElement row = outcome.Json.GetProperty("aggregate");
            return row.GetProperty("count").GetInt64() + row.GetProperty("errors").GetInt64();
        }
    }

    [Fact]
    public async Task Latencies_of_no_success_are_no_zeros()
    {
        FakeTarget target = new(async static (_, _, _) =>
        {
            await Task.Yield();
            throw new InvalidOperationException("refused");
        });
        BenchOutcome outcome = await BenchOutcome.RunAsync(
            target, "-c a --workload set --duration 0.1 --warmup 0 --concurrency 2");
        Assert.Matches(@"TOTAL +0 +0 +- +- +- +- +- +- +- +[\d,]+ +0", outcome.Output);
    }

    [Fact]
    public async Task Seed_that_fails_ends_the_run()
    {
        FakeTarget target = new((_, key, _) =>
            key == "bench:77"
                ? throw new InvalidOperationException("disk full\nmore")
                : new ValueTask<OperationResult>(OperationResult.Success));
        BenchOutcome outcome = await BenchOutcome.RunAsync(target, Endpoint + "--workload get --duration 60");
        Assert.Equal(1, outcome.ExitCode);
        Assert.Empty(outcome.Output);
        Assert.Equal("kahuna-bench: Seeding failed at key bench:77: disk full more", outcome.ErrorLines[^1].TrimEnd());
        Assert.True(target.IsDisposed);
    }

    [Theory]
    [InlineData("")]
    [InlineData("--rate 2000")]
    public async Task Interrupted_run_reports_what_it_has(string rate)
    {
        using CancellationTokenSource stop = new();
        int requests = 0;
        FakeTarget target = new(async (_, _, _) =>
        {
            if (Interlocked.Increment(ref requests) == 100)
            {
                await stop.CancelAsync();
            }

            await Task.Delay(1);
            return OperationResult.Success;
        });
        BenchOutcome outcome = await BenchOutcome.RunAsync(
            target, Endpoint + $"--workload set --duration 600 --warmup 0 --concurrency 4 {rate}", stop: stop.Token);
        Assert.Equal(130, outcome.ExitCode);
        Assert.True(outcome.Json.GetProperty("mode").GetProperty("interrupted").GetBoolean());
        Assert.InRange(outcome.Json.GetProperty("aggregate").GetProperty("count").GetInt64(), 50, 10_000);
        Assert.InRange(outcome.Json.GetProperty("elapsedSec").GetDouble(), 0.001, 60);
        Assert.Contains("note: interrupted", outcome.Error, StringComparison.Ordinal);
    }

    [Fact]
    public async Task Interrupt_while_nothing_answers_does_not_wait_for_the_timeout()
    {
        using CancellationTokenSource stop = new();
        TaskCompletionSource<OperationResult> never = new();
        FakeTarget target = new((_, _, _) =>
        {
            stop.Cancel();
            return new ValueTask<OperationResult>(never.Task);
        });
        Task<BenchOutcome> run = BenchOutcome.RunAsync(
            target, Endpoint + "--workload set --duration 600 --timeout 300 --warmup 0", stop: stop.Token);
        Assert.Equal(130, (await run.WaitAsync(LastNet.Span)).ExitCode);
    }

    [Fact]
    public async Task Live_line_is_for_terminals_only()
    {
        BenchOutcome shown = await BenchOutcome.RunAsync(
            FakeTarget.Yielding(), "-c a --workload set --duration 2.5 --warmup 0 --concurrency 2", isTerminal: true);
        Assert.Matches(@"\r\u001b\[K +\d+ s   in flight \d   [\d,]+ req/s   p99 \d+\.\d{3} ms", shown.Output);
        BenchOutcome redirected = await BenchOutcome.RunAsync(
            FakeTarget.Yielding(), "-c a --workload set --duration 1.2 --warmup 0 --concurrency 2");
        Assert.DoesNotContain("in flight", redirected.Output, StringComparison.Ordinal);
        Assert.DoesNotContain("\u001b", redirected.Output, StringComparison.Ordinal);
    }
}
