using System.Collections.Concurrent;
using System.Globalization;
using Kahuna.Client;
using Kahuna.Client.Sequences;
using Xunit.Abstractions;

namespace Kahuna.Tests.Cluster;

/// <summary>
/// Real processes whose leader is killed again and again under writes that the client repeats by itself: every
/// increment counts once, every value of a sequence comes once and none is missing, but for calls that end as unknown,
/// and those are hardly any.
/// </summary>
[Collection(ClusterCollection.Name)]
public sealed class AtMostOnceCrashTests(ITestOutputHelper output)
{
    private const int Callers = 16;

    private static readonly TimeSpan s_backWithin = LastNet.Span;

    [Fact]
    public async Task Calls_that_the_client_repeats_over_killed_leaders_take_effect_once()
    {
        await using ProcessCluster cluster = new(output);
        await cluster.RunAsync(async () =>
        {
            await cluster.StartAsync();
            await using KahunaClient client = cluster.Connect(LastNet.Call);
            await client.Sequences.CreateAsync("crash/sequence");
            Tally tally = new();
            using CancellationTokenSource stop = new();
            Task[] callers =
                [.. Enumerable.Range(0, Callers).Select(i => Task.Run(() => CallAsync(client, i, tally, stop.Token)))];
            Repeats kills = new(4, 2, share: 30, "KAHUNA_KILLS");
            while (kills.Next())
            {
                await MakeProgressAsync(tally);
                await Task.Delay(Random.Shared.Next(50, 400));
                NodeProcess leader = await cluster.LeaderAsync();
                leader.Kill();
                await MakeProgressAsync(tally);
                leader.Start();
                await cluster.WaitReadyAsync();
            }

            await MakeProgressAsync(tally);
            await stop.CancelAsync();
            await Task.WhenAll(callers).WaitAsync(LastNet.Span);

            long sum = 0;
            for (int i = 0; i < Callers; i++)
            {
                string? text = (await client.KeyValues.GetAsync($"crash/{i}")).Value.AsString();
                sum += long.Parse(text!, CultureInfo.InvariantCulture);
            }

            Assert.InRange(sum, tally.Increments, tally.Increments + tally.UnknownIncrements);
            SequenceDescription sequence = (await client.Sequences.GetAsync("crash/sequence"))!;
            long[] values = [.. tally.Values.Order()];
            Assert.Equal(values.Length, values.Distinct().Count());
            Assert.InRange(sequence.Latest!.Value - values.Length, 0, tally.UnknownValues);
            Assert.InRange(tally.UnknownIncrements + tally.UnknownValues, 0, 2 * kills.Done);
            output.WriteLine(
                $"Checked: {kills} times kill -9 of the leader: {tally.Increments:N0} increments and "
                    + $"{values.Length:N0} values of a sequence, each once; "
                    + $"{tally.UnknownIncrements + tally.UnknownValues} calls of unknown end");
        });
    }

    private static async Task CallAsync(KahunaClient client, int caller, Tally tally, CancellationToken stop)
    {
        while (!stop.IsCancellationRequested)
        {
            long begun = Environment.TickCount64;
            try
            {
                await client.KeyValues.IncrementAsync($"crash/{caller}");
                Interlocked.Increment(ref tally.Increments);
            }
            catch (KahunaException failure)
            {
                Interlocked.Add(ref tally.UnknownIncrements, failure.Outcome == OperationOutcome.DidNotHappen ? 0 : 1);
            }

            try
            {
                tally.Values.Add(await client.Sequences.NextAsync("crash/sequence"));
            }
            catch (KahunaException failure)
            {
                Interlocked.Add(ref tally.UnknownValues, failure.Outcome == OperationOutcome.DidNotHappen ? 0 : 1);
            }

            // Others run beside this test, on a slow machine, too.
            await Task.Delay(Math.Clamp((int)(Environment.TickCount64 - begun), 4, 300), CancellationToken.None);
        }
    }

    private static async Task MakeProgressAsync(Tally tally)
    {
        long before = Interlocked.Read(ref tally.Increments);
        using CancellationTokenSource limit = new(s_backWithin);
        while (Interlocked.Read(ref tally.Increments) < before + 100)
        {
            await Task.Delay(20, limit.Token);
        }
    }

    private sealed class Tally
    {
        public long Increments;
        public long UnknownIncrements;
        public long UnknownValues;

        public ConcurrentBag<long> Values { get; } = [];
    }
}
