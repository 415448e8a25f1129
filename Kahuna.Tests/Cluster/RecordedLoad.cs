using System.Collections.Concurrent;
using System.Diagnostics;
using Kahuna.Client;
using Kahuna.Client.Outcomes;

namespace Kahuna.Tests.Cluster;

/// <summary>
/// Writers that remember what was acknowledged, and the check that it is all there. Every fourth write of a writer goes
/// to a key that it overwrites, the others to keys of their own. Each writer's keys belong to it until
/// <see cref="StopAsync"/>.
/// </summary>
internal sealed class RecordedLoad : IAsyncDisposable
{
    private readonly KahunaClient _client;
    private readonly CancellationTokenSource _stop = new();
    private readonly List<RecordedKey>[] _keys;
    private readonly long[] _lastAcknowledgedStart;
    private readonly ConcurrentQueue<Failure> _failures = new();
    private readonly Task[] _writers;
    private long _acknowledged;

    public RecordedLoad(KahunaClient client, int writers = 16)
    {
        _client = client;
        _keys = [.. Enumerable.Range(0, writers).Select(_ => new List<RecordedKey>())];
        _lastAcknowledgedStart = new long[writers];
        _writers = [.. Enumerable.Range(0, writers).Select(writer => Task.Run(() => WriteAsync(writer)))];
    }

    public long Acknowledged => Interlocked.Read(ref _acknowledged);

    public IReadOnlyCollection<Failure> Failures => _failures;

    public static TimeSpan Now => Stopwatch.GetElapsedTime(0);

    /// <summary>Every writer has had a write acknowledged that it began after the moment.</summary>
    public bool AllGotThroughSince(TimeSpan moment) =>
        _lastAcknowledgedStart.Select((_, i) => Volatile.Read(ref _lastAcknowledgedStart[i]))
            .All(ticks => ticks > moment.Ticks);

    public Task MakeProgressAsync(TimeSpan since, TimeSpan within) =>
        Eventually.TrueAsync(within, "every writer gets a write acknowledged", async () =>
        {
            foreach (Task broken in _writers.Where(writer => writer.IsFaulted))
            {
                await broken;
            }

            return AllGotThroughSince(since);
        });

    /// <summary>How long after the moment the last failure came, up to now; null without failures.</summary>
    public TimeSpan? LastFailureAfter(TimeSpan moment) =>
        _failures.Where(failure => failure.At >= moment).Select(failure => (TimeSpan?)(failure.At - moment)).Max();

    public async Task StopAsync()
    {
        await _stop.CancelAsync();
        await Task.WhenAll(_writers);
    }

    /// <summary>
    /// Reads every key back and returns a sentence about what was checked. Throws with the differences if there are
    /// any.
    /// </summary>
    public async Task<string> CheckAsync()
    {
        List<RecordedKey> keys = [.. _keys.SelectMany(list => list)];
        ConcurrentQueue<string> wrong = new();
        await Parallel.ForEachAsync(keys, new ParallelOptions { MaxDegreeOfParallelism = 64 }, async (key, _) =>
        {
            GetResult read = await ReadAsync(key.Name);
            if (key.Check(read.Found, read.Found ? read.Value.AsString() : null, read.Revision.Value) is { } difference)
            {
                wrong.Enqueue(difference);
            }
        });
        Assert.True(wrong.IsEmpty, $"{wrong.Count} keys differ:\n{string.Join('\n', wrong.Take(20))}");
        long overwritten = keys.Where(key => key.Acknowledged > 1).Sum(key => key.Acknowledged - 1);
        Assert.Equal(Acknowledged, keys.Sum(key => key.Acknowledged));
        int open = keys.Count(key => key.Open != 0);
        return $"{Acknowledged:N0} acknowledged writes: {Acknowledged - overwritten:N0} read back, {overwritten:N0} "
            + $"overwritten by later ones that were read back; {open} ended without an answer, "
            + $"{_failures.Count} failures in all";
    }

    public async ValueTask DisposeAsync()
    {
        await StopAsync();
        _stop.Dispose();
    }

    /// <summary>Reads until there is an answer.</summary>
    private async Task<GetResult> ReadAsync(string key)
    {
        for (TimeSpan begun = Now; ;)
        {
            try
            {
                return await _client.KeyValues.GetAsync(key);
            }
            catch (KahunaException) when (Now - begun < LastNet.Span)
            {
                await Task.Delay(100);
            }
        }
    }

    private async Task WriteAsync(int writer)
    {
        RecordedKey? register = null;
        for (long i = 0; !_stop.IsCancellationRequested; i++)
        {
            bool overwrite = i % 4 == 0;
            RecordedKey key = overwrite && register is { Open: 0 }
                ? register
                : NewKey(writer, overwrite ? $"register{i}" : $"single{i}");
            register = overwrite ? key : register;
            TimeSpan begun = Now;
            long value = key.NextValue();
            try
            {
                var written = await _client.KeyValues.SetAsync(key.Name, value.ToString());
                key.Acknowledge(value, written.Revision.Value);
                Interlocked.Increment(ref _acknowledged);
                Volatile.Write(ref _lastAcknowledgedStart[writer], begun.Ticks);
            }
            catch (KahunaException error)
            {
                if (error.Outcome != OperationOutcome.DidNotHappen)
                {
                    key.LeaveOpen(value);
                }

                _failures.Enqueue(new Failure(Now, error));
            }

            // Far below what a machine can do, however slow it is: the tests are about faults, others run beside them,
            // and their keys are read back one by one.
            await Task.Delay(Math.Clamp(2 * (int)(Now - begun).TotalMilliseconds, 8, 300));
        }
    }

    private RecordedKey NewKey(int writer, string name)
    {
        RecordedKey key = new($"writer{writer}/{name}");
        _keys[writer].Add(key);
        return key;
    }
}
