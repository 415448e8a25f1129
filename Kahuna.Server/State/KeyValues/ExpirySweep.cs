using Kahuna.Server.Primitives;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.State.KeyValues;

/// <summary>
/// What a leader's sweep does: removes keys whose time has passed, and catches up with what is too old. Bounded work;
/// the same on every node. Stateless.
/// </summary>
internal static class ExpirySweep
{
    /// <summary>
    /// Keys that a leader lets one sweep remove: with twice as many deleted ones to forget, about as much work as 25
    /// sets.
    /// </summary>
    public const int KeysPerCommand = 32;

    /// <summary>
    /// How many keys a sweep would find, counted up to <paramref name="countMax"/>; revisions that are too old count as
    /// one.
    /// </summary>
    public static int CountDue(KeyStore store, ClusterTime time, int countMax) =>
        Math.Min(
            countMax,
            Math.Max(
                store.Expiry.CountPassed(time, countMax),
                Math.Max(store.Forgotten.Waiting, store.History.HasAged(time) ? 1 : 0)));

    /// <summary>
    /// Removes at most as many keys as the command says, the earliest deadline first, and drops at most twice as many
    /// old revisions and deleted keys. How many keys it removed.
    /// </summary>
    public static long Apply(KeyStore store, scoped in Command command, ClusterTime time)
    {
        long countMax = new Sweep(in command).StepsMax;
        long removed = 0;
        Row first;
        while (removed < countMax && (first = store.Expiry.First) is { IsNone: false } && store.Expire(first, time))
        {
            removed++;
        }

        int droppedMax = 2 * (int)Math.Clamp(countMax, 0, ushort.MaxValue);
        store.History.EvictAged(time, droppedMax);
        store.Forgotten.Forget(droppedMax);
        return removed;
    }
}
