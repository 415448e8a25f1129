using Kahuna.Tests.Linearizability;
using Kahuna.Tests.Simulation.Engine;

namespace Kahuna.Tests.Cluster.Soak;

/// <summary>
/// The keys in use. One that was used often enough is retired for a new one, so that its history stays short enough to
/// be checked. Any thread.
/// </summary>
internal sealed class SoakKeys
{
    /// <summary>Below the 300 that the checker takes, with room.</summary>
    public const int OperationsMax = 250;

    private readonly Lock _gate = new();
    private readonly SoakKey[] _slots;
    private readonly HashSet<SoakKey> _retired = [];
    private int _made;

    public SoakKeys(int slots) => _slots = [.. Enumerable.Range(0, slots).Select(Make)];

    /// <summary>
    /// A key for the next operation of a caller, which <see cref="Return"/> must follow; and its
    /// <see cref="SoakKey.Latest"/>.
    /// </summary>
    public SoakKey Take(SimRandom random, out HistoryOperation? latest)
    {
        // The first of a hundred slots gets a fifth of all, and a slot in the middle one of two hundred.
        int slot = (int)(_slots.Length * Math.Pow(random.NextDouble(), 3));
        lock (_gate)
        {
            SoakKey key = _slots[slot];
            key.Begin();
            latest = key.Latest;
            if (key.Begun == OperationsMax)
            {
                key.IsRetired = true;
                _retired.Add(key);
                _slots[slot] = Make(slot);
            }

            return key;
        }
    }

    /// <summary>
    /// The operation has come back. True: it was the last one of its key, whose history is now complete and the
    /// caller's.
    /// </summary>
    public bool Return(SoakKey key, HistoryOperation operation)
    {
        lock (_gate)
        {
            key.End(operation);
            return key is { IsRetired: true, IsComplete: true } && _retired.Remove(key);
        }
    }

    /// <summary>Every key that was used and not given away, when nothing is under way any more.</summary>
    public IReadOnlyList<SoakKey> TakeRest()
    {
        lock (_gate)
        {
            return [.. _slots.Where(static key => key.Begun > 0), .. _retired];
        }
    }

    /// <summary>Slots by fours share a bucket, and so a partition; every fifth is a counter.</summary>
    private SoakKey Make(int slot) => new($"soak{slot % 4}/{slot}.{++_made}", isCounter: slot % 5 == 3);
}
