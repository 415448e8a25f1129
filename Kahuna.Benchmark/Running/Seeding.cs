using Kahuna.Benchmark.Recording;
using Kahuna.Benchmark.Targets;

namespace Kahuna.Benchmark.Running;

/// <summary>
/// Writes keys before the load, for reads to find or for a cluster that holds as many. All of them, or the run ends
/// with an error. Owned by the run.
/// </summary>
internal sealed class Seeding(LoadShape load)
{
    /// <summary>Concurrent writers at most.</summary>
    public const int WritersMax = 64;

    private int _next;

    public int Keys { get; } = load.Options.SeedKeys;

    public int Writers => Math.Min(WritersMax, Keys);

    public async Task RunAsync(CancellationToken cancellationToken)
    {
        using CancellationTokenSource failed = CancellationTokenSource.CreateLinkedTokenSource(cancellationToken);
        Task[] writers = new Task[Writers];
        for (int i = 0; i < writers.Length; i++)
        {
            IKeyValueSession session = (IKeyValueSession)load.Target.OpenSession(i);
            writers[i] = Task.Run(() => WriteAsync(session, failed), CancellationToken.None);
        }

        // An interrupt does not wait for writes under way: nobody will read them.
        await Task.WhenAll(writers).WaitAsync(cancellationToken).ConfigureAwait(false);
    }

    private async Task WriteAsync(IKeyValueSession session, CancellationTokenSource failed)
    {
        while (!failed.IsCancellationRequested)
        {
            int number = Interlocked.Increment(ref _next) - 1;
            if (number >= Keys)
            {
                return;
            }

            string key = load.Workload.Keys[number];
            try
            {
                await session.SetAsync(key, load.Workload.Payloads.OfSeededKey(number)).ConfigureAwait(false);
            }
            catch (Exception failure)
            {
                await failed.CancelAsync().ConfigureAwait(false);
                throw new TargetException($"Seeding failed at key {key}: {FailureLog.Line(failure.Message)}", failure);
            }
        }
    }
}
