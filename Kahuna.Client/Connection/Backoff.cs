namespace Kahuna.Client.Connection;

/// <summary>Pauses before the next attempt: doubling from the shortest to the longest, the second half of each at random, so that many clients do not come back at one moment. Any thread.</summary>
internal sealed class Backoff(TimeSpan min, TimeSpan max, int seed)
{
    private readonly Random _random = new(seed);
    private readonly Lock _lock = new();

    /// <summary>The pause after <paramref name="attempts"/> attempts, 1 or more.</summary>
    public TimeSpan After(int attempts)
    {
        double full = Math.Min(max.TotalMilliseconds, min.TotalMilliseconds * Math.Pow(2, Math.Min(attempts - 1, 30)));
        lock (_lock)
        {
            return TimeSpan.FromMilliseconds((full / 2) + (_random.NextDouble() * full / 2));
        }
    }
}
