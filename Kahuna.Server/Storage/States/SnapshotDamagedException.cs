using Kahuna.Server.Partitions;

namespace Kahuna.Server.Storage.States;

/// <summary>A file that holds the state of one group is damaged: the message names file, place and reason. Nothing was changed. Any thread.</summary>
internal sealed class SnapshotDamagedException(string message) : GroupDamagedException(message);
