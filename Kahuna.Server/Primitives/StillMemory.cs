namespace Kahuna.Server.Primitives;

/// <summary>
/// Arrays for what stays long and is large: the rows and bytes of states, and the log's entries. They lie apart from what comes and goes, where the collector moves nothing, so that giving memory back costs the same beside a small
/// state and beside a large one, and long-lived arrays do not keep the room between them. Stateless; any thread.
/// </summary>
internal static class StillMemory
{
    /// <summary>An array whose content is whatever was there before.</summary>
    public static T[] Take<T>(int length)
        where T : unmanaged => GC.AllocateUninitializedArray<T>(length, pinned: true);
}
