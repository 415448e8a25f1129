using System.Diagnostics;

namespace Kahuna.Tests.Cluster;

/// <summary>Bounded waits for a condition that other processes bring about. Stateless.</summary>
internal static class Eventually
{
    public static async Task TrueAsync(TimeSpan within, string what, Func<Task<bool>> condition)
    {
        Stopwatch elapsed = Stopwatch.StartNew();
        while (!await condition())
        {
            if (elapsed.Elapsed > within)
            {
                throw new TimeoutException($"Not within {within.TotalSeconds:0} s: {what}.");
            }

            await Task.Delay(50);
        }
    }

    public static Task TrueAsync(TimeSpan within, string what, Func<bool> condition) =>
        TrueAsync(within, what, () => Task.FromResult(condition()));
}
