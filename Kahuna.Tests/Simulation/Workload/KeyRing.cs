using Kahuna.Tests.Simulation.Engine;

namespace Kahuna.Tests.Simulation.Workload;

/// <summary>
/// The keys of a run. A key that was used often enough is replaced by a new one, so that its history stays short enough
/// to be checked. Owned by one run.
/// </summary>
internal sealed class KeyRing(int slots)
{
    private const int UsesMax = 250;

    private readonly (int Generation, int Uses)[] _slots = new (int, int)[slots];

    /// <summary>All keys that are in use; each is used once by this.</summary>
    public string[] Names()
    {
        string[] names = new string[slots];
        for (int slot = 0; slot < slots; slot++)
        {
            names[slot] = Use(slot);
        }

        return names;
    }

    /// <summary>A key; one of the first two when everybody wants the same.</summary>
    public string Take(SimRandom random, bool same)
    {
        // Some keys are busier than others.
        int among = same ? Math.Min(slots, 2) : slots;
        return Use(Math.Min(random.Next(among), random.Next(among)));
    }

    private string Use(int slot)
    {
        ref (int Generation, int Uses) taken = ref _slots[slot];
        if (++taken.Uses > UsesMax)
        {
            taken = (taken.Generation + 1, 1);
        }

        return $"k{slot}.{taken.Generation}";
    }
}
