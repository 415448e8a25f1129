namespace Kahuna.Client.Coordination;

/// <summary>
/// Bounds the processor time that the scripts which a node drives for its callers may take: a few compute at a time,
/// and each place rests afterwards for as long as it computed. So scripts get at most half of these places' time. Owned
/// by a node; any thread.
/// </summary>
/// <param name="time">Measures the runs.</param>
/// <param name="atOnce">Runs that compute at a time.</param>
internal sealed class DrivePace(TimeProvider time, int atOnce)
{
    /// <summary>A shorter run does not rest: a timer costs more.</summary>
    private static readonly TimeSpan s_leastRest = TimeSpan.FromMilliseconds(1);

    private readonly SemaphoreSlim _places = new(atOnce, atOnce);

    /// <summary>Computes when it is its turn.</summary>
    /// <param name="compute">Computes, without waiting for anything.</param>
    /// <param name="ct">Ends the wait for a turn.</param>
    public async Task<T> RunAsync<T>(Func<T> compute, CancellationToken ct)
    {
        await _places.WaitAsync(ct).ConfigureAwait(false);
        long began = time.GetTimestamp();
        try
        {
            return compute();
        }
        finally
        {
            _ = RestAsync(time.GetElapsedTime(began));
        }
    }

    private async Task RestAsync(TimeSpan rest)
    {
        if (rest >= s_leastRest)
        {
            await Task.Delay(rest, time, CancellationToken.None).ConfigureAwait(false);
        }

        _places.Release();
    }
}
