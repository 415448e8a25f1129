using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Partitions.Requests;

/// <summary>
/// Why a group's leader refuses a write before it is proposed: too much is uncommitted, the log or the memory has no
/// room, or the command is for another epoch. Owned by a group's <see cref="PendingRequests"/>; not thread-safe.
/// </summary>
/// <param name="parts">What the group consists of.</param>
/// <param name="mayLease">
/// In an ephemeral group: asks for leases of this length; false while the meta group has not made room for them. Null
/// in other groups.
/// </param>
/// <param name="holds">Keys that pessimistic transactions hold.</param>
internal sealed class WriteRules(RequestParts parts, Func<long, bool>? mayLease, TransactionHolds holds)
{
    private readonly bool _isEphemeral = parts.Group.IsEphemeral;
    private readonly RangeDeletePace _rangeDeletes = new();
    private readonly ScriptPace _scripts = new();
    private readonly PreparePace _prepares = new();
    private readonly RangeRowPace _rangeRows = new();

    /// <summary>The epoch of an ephemeral group.</summary>
    public Epoch Epoch { get; set; }

    /// <summary>
    /// Why this command, or read, needs a higher feature level than the cluster has; null: it does not.
    /// </summary>
    public static string? RefuseLevel(ReadOnlySpan<byte> command, RaftCore core) =>
        CommandKinds.Of((CommandKind)command[0]) is var kind && kind.Since <= core.Level
            ? null
            : $"{kind.Name} needs feature level {kind.Since}, and the cluster has level "
                + $"{core.Level}. The level rises by "
                + "itself once all nodes run a version that supports it.";

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

        if (PaceRefusal(command) is { } tooMuch)
        {
            return tooMuch;
        }

        // A repetition gets the outcome of its first attempt: to refuse it would say that nothing was changed.
        if (RefuseHeld(command, out status) is { } held && !IsRepetition(command))
        {
            return held;
        }

        status = OutcomeStatus.Unavailable;
        if (_isEphemeral && Command.EpochOf(command) is var epoch and not 0 && epoch != Epoch.Short)
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

    /// <summary>Why a command that is more work than it looks has to come later; null: it need not.</summary>
    private string? PaceRefusal(ReadOnlySpan<byte> command)
    {
        if ((CommandKind)command[0] == CommandKind.KeyRangeDelete && !_rangeDeletes.TryTake(parts.Clock.Now))
        {
            return "The partition deletes as many ranges of keys as it may at a time; try again later.";
        }

        if ((CommandKind)command[0] == CommandKind.Script && !TakesScript(command))
        {
            return "The partition runs as many scripts as it may at a time, and a text that is new to it counts as a "
                + "long one; try again later.";
        }

        if ((CommandKind)command[0] == CommandKind.TransactionPrepare && !TakesPart(command))
        {
            return "The partition prepares as many keys of transactions as it may at a time; try again later.";
        }

        if ((CommandKind)command[0] is CommandKind.Transaction or CommandKind.TransactionPrepare
            && !TakesRanges(command))
        {
            return "The partition looks at as many rows for the ranges of transactions as it may at a time; try again "
                + "later.";
        }

        return null;
    }

    private bool TakesScript(ReadOnlySpan<byte> bytes) =>
        Command.TryRead(bytes, out Command command)
            && _scripts.TryTake(parts.Clock.Now, parts.Applied.State.KeyValues.ScriptStepsOf(in command));

    private bool TakesPart(ReadOnlySpan<byte> bytes) =>
        Command.TryRead(bytes, out Command command)
            && PrepareBody.TryRead(command.Value, out PrepareBody prepare)
            && TransactionBody.TryRead(prepare.Part, out TransactionBody part)
            && _prepares.TryTake(parts.Clock.Now, 1 + part.Conditions + part.Then + part.Else);

    private bool TakesRanges(ReadOnlySpan<byte> bytes)
    {
        ReadOnlySpan<byte> part = Command.TryRead(bytes, out Command command) ? command.Value : default;
        if (command.Kind == CommandKind.TransactionPrepare)
        {
            part = PrepareBody.TryRead(part, out PrepareBody prepare) ? prepare.Part : default;
        }

        return !TransactionBody.TryRead(part, out TransactionBody body)
            || body.Ranges == 0
            || (_rangeRows.HasAny(parts.Clock.Now)
                && _rangeRows.TryTake(
                    parts.Clock.Now,
                    (body.Ranges * RangeRowPace.RowsPerRange)
                        + parts.Applied.State.KeyValues.Prepared.RangeRowsOf(in body)));
    }

    private string? RefuseHeld(ReadOnlySpan<byte> command, out OutcomeStatus status)
    {
        if (parts.Applied.State.KeyValues.Prepared.Counts.Keys > 0 && IsHeld(command))
        {
            status = OutcomeStatus.KeyInTransaction;
            return "A transaction that is being committed holds the key; try again.";
        }

        status = default;
        return holds.Count > 0 ? holds.Refuse(command, out status) : null;
    }

    private bool IsRepetition(ReadOnlySpan<byte> bytes) =>
        Command.TryRead(bytes, out Command command) && parts.Applied.State.IsRepetition(in command);

    private bool IsHeld(ReadOnlySpan<byte> bytes) =>
        Command.TryRead(bytes, out Command command) && parts.Applied.State.KeyValues.Prepared.Refuses(in command);

    /// <summary>The lease that a command asks for; 0: none.</summary>
    private static long LeaseOf(ReadOnlySpan<byte> bytes) =>
        CommandKinds.Has((CommandKind)bytes[0], CommandTraits.GrantsLease)
            && Command.TryRead(bytes, out Command command) ? command.TtlMs : 0;

    /// <summary>What frees memory is taken also when it is full.</summary>
    private static bool MayGrow(ReadOnlySpan<byte> command) =>
        !CommandKinds.Has((CommandKind)command[0], CommandTraits.FreesMemory);
}
