namespace Kahuna.Tests.Tools.Paths;

/// <summary>
/// Where woven methods report that they were entered (<see cref="PathWeaver"/>). Public, since the product's assemblies
/// call it. Any thread.
/// </summary>
public static class PathTracer
{
    private const int Capacity = 1 << 22;

    private static readonly int[] s_entered = new int[Capacity];
    private static long s_count;

    /// <summary>Methods entered so far.</summary>
    internal static long Count => Volatile.Read(ref s_count);

    /// <summary>A method was entered.</summary>
    /// <param name="method">Its number in the weaver's list.</param>
    public static void Enter(int method) =>
        s_entered[(Interlocked.Increment(ref s_count) - 1) & (Capacity - 1)] = method;

    /// <summary>The methods that were entered in a span of the count, each once.</summary>
    internal static HashSet<int> Between(long first, long end)
    {
        HashSet<int> entered = [];
        for (long i = Math.Max(first, end - Capacity); i < end; i++)
        {
            entered.Add(s_entered[i & (Capacity - 1)]);
        }

        return entered;
    }
}
