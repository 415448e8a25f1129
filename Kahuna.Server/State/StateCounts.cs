namespace Kahuna.Server.State;

/// <summary>Size of one partition's state.</summary>
/// <param name="Keys">Live keys.</param>
/// <param name="Tombstones">Deleted keys whose revision is remembered.</param>
/// <param name="History">Replaced revisions that are still readable.</param>
/// <param name="Bytes">Bytes of all tables and slabs.</param>
internal readonly record struct StateCounts(long Keys, long Tombstones, long History, long Bytes);
