namespace Kahuna.Tests.Simulation.Engine;

/// <summary>
/// Random numbers from a seed, the same on every machine and runtime (SplitMix64). Each purpose has a generator of its
/// own, so that one more draw here changes nothing there. Not thread-safe.
/// </summary>
internal sealed class SimRandom(ulong seed)
{
    private readonly ulong _seed = seed;
    private ulong _drawn;

    /// <summary>A generator for another purpose.</summary>
    public SimRandom Fork(ulong purpose) => new(Mix(Mix(_seed + 0x632BE59BD9B4E019) ^ purpose));

    public ulong Next() => Mix(_seed + (++_drawn * 0x9E3779B97F4A7C15));

    /// <summary>0 or more, below <paramref name="end"/>.</summary>
    public int Next(int end) => (int)(((UInt128)Next() * (uint)end) >> 64);

    /// <summary>From <paramref name="first"/> to <paramref name="last"/>, both included.</summary>
    public int Between(int first, int last) => first + Next(last - first + 1);

    /// <inheritdoc cref="Between(int, int)"/>
    public long Between(long first, long last) => first + (long)(((UInt128)Next() * (ulong)(last - first + 1)) >> 64);

    /// <summary>0 or more, below 1.</summary>
    public double NextDouble() => (Next() >> 11) * (1.0 / (1UL << 53));

    public bool Chance(double probability) => NextDouble() < probability;

    /// <summary>Exponentially distributed.</summary>
    public double Exponential(double mean) => -mean * Math.Log(1 - NextDouble());

    public T Pick<T>(IReadOnlyList<T> choices) => choices[Next(choices.Count)];

    public void Shuffle<T>(T[] items)
    {
        for (int i = items.Length - 1; i > 0; i--)
        {
            int j = Next(i + 1);
            (items[i], items[j]) = (items[j], items[i]);
        }
    }

    /// <summary>For code that takes the runtime's own generator.</summary>
    public Random ToRandom() => new((int)(Next() >> 33));

    private static ulong Mix(ulong z)
    {
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
        return z ^ (z >> 31);
    }
}
