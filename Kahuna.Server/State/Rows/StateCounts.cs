namespace Kahuna.Server.State.Rows;

/// <summary>Size of one partition's state.</summary>
/// <param name="Keys">Live keys.</param>
/// <param name="Tombstones">Deleted keys whose revision is remembered.</param>
/// <param name="History">Replaced revisions that are still readable.</param>
/// <param name="Bytes">Bytes of all tables and slabs.</param>
/// <param name="Evicted">Keys that went for want of room, since this state began on this node.</param>
internal readonly record struct StateCounts(long Keys, long Tombstones, long History, long Bytes, long Evicted = 0);
