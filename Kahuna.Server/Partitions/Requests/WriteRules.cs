using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Partitions.Requests;

/// <summary>
/// Why a group's leader refuses a write before it is proposed: too much is uncommitted, the log or the memory has no
/// room, or the command is for another epoch. Owned by a group's <see cref="PendingRequests"/>; not thread-safe.
/// </summary>
/// <param name="parts">What the group consists of.</param>
/// <param name="mayLease">
/// In an ephemeral group: asks for leases of so many ms; false while the meta group has not made room for them. Null in
/// other groups.
/// </param>
internal sealed class WriteRules(RequestParts parts, Func<long, bool>? mayLease)
{
    private readonly bool _isEphemeral = parts.Group.IsEphemeral;

    /// <summary>The epoch of an ephemeral group.</summary>
    public ulong Epoch { get; set; }

    /// <summary>Why this write is refused, or null.</summary>
    /// <param name="command">The encoded command.</param>
    /// <param name="pendingBytes">Bytes of writes that are queued or proposed.</param>
    /// <param name="status">What the refusal says to the caller's code.</param>
    public string? Refuse(ReadOnlySpan<byte> command, long pendingBytes, out OutcomeStatus status)
    {
        status = OutcomeStatus.Busy;
        if (pendingBytes > parts.Options.UncommittedBytesMax)
        {
            return "The partition has more uncommitted writes than it may; try again later.";
        }

        status = OutcomeStatus.Unavailable;
        if (_isEphemeral && Command.EpochOf(command) is var epoch and not 0 && epoch != (ushort)Epoch)
        {
            return "The partition has begun another epoch than the one that the command is for.";
        }

        status = OutcomeStatus.LogFull;
        if (!_isEphemeral && parts.LogWatch.RefuseWrites is { } reason)
        {
            return reason;
        }

        status = OutcomeStatus.MemoryFull;
        if (MayGrow(command) && parts.Memory.RefuseGrowth(pendingBytes) is { } full)
        {
            return full;
        }

        status = OutcomeStatus.Unavailable;
        return mayLease is not null && LeaseOf(command) is var lease and not 0 && !mayLease(lease)
            ? "The partition makes room for leases of this length; try again."
            : null;
    }

    /// <summary>The lease that a command asks for; 0: none.</summary>
    private static long LeaseOf(ReadOnlySpan<byte> bytes) =>
        (CommandKind)bytes[0] is CommandKind.LockAcquire or CommandKind.LockExtend
            && Command.TryRead(bytes, out Command command) ? command.TtlMs : 0;

    /// <summary>What frees memory is taken also when it is full.</summary>
    private static bool MayGrow(ReadOnlySpan<byte> command) =>
        (CommandKind)command[0] is not (CommandKind.Delete or CommandKind.Extend or CommandKind.SequenceDelete
            or CommandKind.LockExtend or CommandKind.LockRelease);
}
