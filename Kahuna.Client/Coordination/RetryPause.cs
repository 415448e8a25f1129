using Kahuna.Client.Connection;

namespace Kahuna.Client.Coordination;

/// <summary>
/// Pauses between the tries of a transaction. They are random and grow, so that two transactions that have met do not
/// meet again. Any thread.
/// </summary>
internal sealed class RetryPause(ClusterConnection connection, int seed)
{
    /// <summary>The longest mean pause between two tries.</summary>
    private const int MeanMsMax = 100;

    private readonly Random _random = new(seed);
    private readonly Lock _lock = new();

    /// <summary>The pause after this number of tries, 1 or more.</summary>
    public TimeSpan After(int tries)
    {
        double mean = Math.Min(MeanMsMax, 1 << Math.Min(tries, 10));
        lock (_lock)
        {
            return TimeSpan.FromMilliseconds(2 * mean * _random.NextDouble());
        }
    }

    /// <summary>Waits.</summary>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async Task WaitAsync(TimeSpan pause, CancellationToken ct)
    {
        try
        {
            await Task.Delay(pause, connection.Time, ct).ConfigureAwait(connection.CapturesContext);
        }
        catch (OperationCanceledException)
        {
            throw new KahunaCanceledException(OperationOutcome.DidNotHappen, ct);
        }
    }
}
