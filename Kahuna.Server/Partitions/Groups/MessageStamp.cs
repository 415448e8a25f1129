namespace Kahuna.Server.Partitions.Groups;

/// <summary>What a message of an ephemeral group says of its sender; the default for other groups. A value.</summary>
/// <param name="Epoch">The epoch that it is about.</param>
/// <param name="Incarnation">The start of its node that the sender is.</param>
internal readonly record struct MessageStamp(ulong Epoch, ulong Incarnation);
