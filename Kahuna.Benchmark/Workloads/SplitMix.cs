namespace Kahuna.Benchmark.Workloads;

/// <summary>
/// The SplitMix64 generator (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014): two
/// multiplications per number and the same sequence on every machine. A mutable value; each worker owns its own.
/// </summary>
internal struct SplitMix
{
    private const ulong Gamma = 0x9E3779B97F4A7C15;
    private ulong _state;

    /// <summary>
    /// Starts the sequence number <paramref name="stream"/> of <paramref name="seed"/>; sequences of different numbers
    /// are unrelated.
    /// </summary>
    public SplitMix(long seed, long stream)
    {
        _state = Scramble((ulong)seed ^ Gamma) ^ Scramble((ulong)stream + Gamma);
    }

    public ulong Next()
    {
        _state += Gamma;
        return Scramble(_state);
    }

    /// <summary>A number below <paramref name="bound"/>, from the upper half of <paramref name="bits"/>.</summary>
    public static int Below(ulong bits, int bound) => (int)((bits >> 32) * (ulong)bound >> 32);

    private static ulong Scramble(ulong z)
    {
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
        return z ^ (z >> 31);
    }
}
