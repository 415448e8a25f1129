namespace Kahuna.Server.Partitions.Ports;

/// <summary>
/// The records of a group's stored state are not what was stored, or state and log do not belong together. Any thread.
/// </summary>
internal sealed class GroupUnusableException(string message, Exception? inner = null)
    : GroupDamagedException(message, inner);
