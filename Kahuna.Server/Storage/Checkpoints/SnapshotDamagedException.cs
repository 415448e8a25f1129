using Kahuna.Server.Partitions.Ports;

namespace Kahuna.Server.Storage.Checkpoints;

/// <summary>
/// The snapshot file of one group is damaged. The message names file, offset and reason. Nothing was changed.
/// Immutable.
/// </summary>
internal sealed class SnapshotDamagedException(string message) : GroupDamagedException(message);
