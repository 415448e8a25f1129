namespace Kahuna.Server.Primitives;

/// <summary>
/// Pinned arrays for large, long-lived data: rows and bytes of states, and log entries. The collector neither moves nor
/// copies them, so collections cost the same for small and large states, and long-lived arrays do not fragment the heap
/// of short-lived ones. Stateless; any thread.
/// </summary>
internal static class PinnedMemory
{
    /// <summary>Allocates an array with undefined content.</summary>
    public static T[] Allocate<T>(int length)
        where T : unmanaged => GC.AllocateUninitializedArray<T>(length, pinned: true);
}
