using System.Diagnostics;
using Kahuna.Benchmark.Recording;
using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Locks;

namespace Kahuna.Tests.Cluster.Attack;

/// <summary>
/// Callers that do what the system is for, at a moderate rate, and how long each call took. Owned by one run.
/// </summary>
internal sealed class LegitimateLoad(KahunaClient client)
{
    private const int Callers = 8;
    private const int FillingCallers = 64;
    private const int FilledKeys = 200_000;
    private const int FilledValueBytes = 256;

    private static readonly TimeSpan s_think = TimeSpan.FromMilliseconds(10);

    private readonly Lock _gate = new();
    private readonly List<string> _errors = [];
    private LatencyHistogram _latencies = new();

    /// <summary>Calls that failed: the first words of each, at most a few.</summary>
    public IReadOnlyList<string> Errors
    {
        get
        {
            lock (_gate)
            {
                return [.. _errors];
            }
        }
    }

    /// <summary>
    /// Sets two hundred thousand keys as fast as the cluster takes them, twice: afterwards the nodes hold what a
    /// cluster in use holds, and their buffers and caches have the size that ordinary work gives them.
    /// </summary>
    public Task FillAsync() =>
        Task.WhenAll(Enumerable.Range(0, FillingCallers).Select(caller => Task.Run(() => FillAsync(caller))));

    /// <summary>Runs until <paramref name="end"/>, and returns how long the calls took, in microseconds.</summary>
    public async Task<LatencyHistogram> MeasureAsync(CancellationToken end)
    {
        _latencies = new LatencyHistogram();
        await Task.WhenAll(Enumerable.Range(0, Callers).Select(caller => Task.Run(() => CallAsync(caller, end))));
        return _latencies;
    }

    private async Task FillAsync(int caller)
    {
        byte[] value = new byte[FilledValueBytes];
        for (int i = caller; i < 2 * FilledKeys; i += FillingCallers)
        {
            await client.KeyValues.SetAsync($"filled/{i % FilledKeys}", value);
        }
    }

    private async Task CallAsync(int caller, CancellationToken end)
    {
        for (int i = 0; !end.IsCancellationRequested; i++)
        {
            long began = Stopwatch.GetTimestamp();
            try
            {
                await CallAsync(caller, i);
                lock (_gate)
                {
                    _latencies.Record((long)Stopwatch.GetElapsedTime(began).TotalMicroseconds);
                }
            }
            catch (KahunaException error)
            {
                lock (_gate)
                {
                    if (_errors.Count < 20)
                    {
                        _errors.Add(error.Message);
                    }
                }
            }

            await Task.Delay(s_think, end).ContinueWith(static _ => { }, TaskScheduler.Default);
        }
    }

    private async Task CallAsync(int caller, int i)
    {
        string key = $"good/{caller}/{i % 100}";
        switch (i % 4)
        {
            case 0:
                await client.KeyValues.SetAsync(key, "value");
                break;
            case 1:
                await client.KeyValues.GetAsync(key);
                break;
            case 2:
                await client.KeyValues.IncrementAsync($"good/{caller}/count");
                break;
            default:
                await using (LockHandle handle = await client.Locks.AcquireAsync(
                    key, TimeSpan.FromSeconds(15), TimeSpan.FromSeconds(30)))
                {
                    await client.KeyValues.SetAsync(key, "locked", new SetOptions { Fence = handle.Fence });
                }

                break;
        }
    }
}
