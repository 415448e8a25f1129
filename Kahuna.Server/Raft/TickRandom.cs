namespace Kahuna.Server.Raft;

/// <summary>A seeded splitmix64 generator for election timeouts: the same seed gives the same run. Owned by one core; not thread-safe.</summary>
internal sealed class TickRandom(ulong seed)
{
    private ulong _state = seed;

    /// <summary>A number in [0, <paramref name="bound"/>).</summary>
    public int Below(int bound)
    {
        _state += 0x9E3779B97F4A7C15;
        ulong mixed = _state;
        mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9;
        mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB;
        mixed ^= mixed >> 31;
        return (int)(mixed % (ulong)bound);
    }
}
