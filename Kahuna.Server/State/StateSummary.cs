using Kahuna.Server.Primitives;

namespace Kahuna.Server.State;

/// <summary>What a view says of the whole state besides its keys; together they are the state.</summary>
/// <param name="Time">Cluster time of the last applied entry.</param>
/// <param name="FirstHistoryNumber">Kept revisions with a lower number have been dropped, also where a key's record
/// still has them.</param>
/// <param name="NextHistoryNumber">The number that the next replaced revision gets.</param>
/// <param name="Rows">Rows of the state, and so its keys, deleted ones included; the records of all of them are the
/// state.</param>
/// <param name="Digest">Digest of the state; what is loaded must come to the same.</param>
internal readonly record struct StateSummary(
    ClusterTime Time, long FirstHistoryNumber, long NextHistoryNumber, int Rows, ulong Digest);
