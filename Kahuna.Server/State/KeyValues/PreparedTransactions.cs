using Kahuna.Server.Primitives;
using Kahuna.Server.State.Dispatch;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.State.KeyValues;

/// <summary>
/// This group's share of transactions over several partitions (docs/adr/0040-two-phase-commit.md): the parts that are
/// prepared here, whose keys nobody else may change, and the decisions that are kept here. Parts and decisions are
/// rows, so they are replicated, stored and digested like keys. A part goes only by a decision, whatever its time.
/// Owned by one <see cref="KeyValueTable"/>; not thread-safe.
/// </summary>
internal sealed class PreparedTransactions
{
    /// <summary>Prepared parts of a group.</summary>
    public const int PartsMax = 4_096;

    /// <summary>Keys that they may hold.</summary>
    public const int KeysMax = 65_536;

    /// <summary>Ranges of keys that they may hold.</summary>
    public const int RangesMax = 1_024;

    /// <summary>Bytes that they may have.</summary>
    public const long BytesMax = 64 << 20;

    /// <summary>Bytes of the names of its rows.</summary>
    public const int NameBytes = SystemRowKind.PrefixBytes + TransactionId.Bytes;

    private readonly KeyStore _store;
    private readonly TransactionRunner _runner;
    private readonly DecisionRecords _records;
    private int _parts;
    private long _partBytes;

    /// <summary>Takes what the store has.</summary>
    public PreparedTransactions(KeyStore store, TransactionRunner runner)
    {
        _store = store;
        _runner = runner;
        _records = new DecisionRecords(store);
        Overdue = new OverdueTransactions(store);
        RowSet rows = store.System.Of(SystemRowKind.PreparedPart);
        for (Row row = rows.Next(Row.First); !row.IsNone; row = rows.Next(row.Next))
        {
            ReadOnlySpan<byte> value = ValueOf(row);
            Count(value, 1);
            HoldAll(PreparedPart.Read(value));
        }
    }

    /// <summary>Writes the name of a transaction's row.</summary>
    public static void Name(SystemRowKind kind, ReadOnlySpan<byte> id, Span<byte> name)
    {
        kind.WritePrefix(name);
        id.CopyTo(name[SystemRowKind.PrefixBytes..]);
    }

    /// <summary>Transactions whose time has passed.</summary>
    public OverdueTransactions Overdue { get; }

    /// <summary>What the group holds.</summary>
    public PreparedCounts Counts => new(_parts, _store.Prepared.Count, _records.Undecided, _records.Decided);

    /// <summary>Counts up with each key that is let go.</summary>
    public long Released => _store.Prepared.Released;

    /// <inheritdoc cref="HeldKeyGate.Refuses"/>
    public bool Refuses(scoped in Command command) => HeldKeyGate.Refuses(_store.Prepared, in command);

    /// <inheritdoc cref="HeldKeyGate.Delays"/>
    public bool Delays(scoped in Command command) => HeldKeyGate.Delays(_store.Prepared, in command);

    /// <summary>A transaction holds a key of a range to write it. An empty end: no key is behind the range.</summary>
    public bool HoldsToWrite(ReadOnlySpan<byte> start, ReadOnlySpan<byte> end) =>
        _store.Prepared.AnyWritten(start, end);

    /// <inheritdoc cref="TransactionRunner.RangeRowsOf"/>
    public int RangeRowsOf(scoped in TransactionBody body) => _runner.RangeRowsOf(in body);

    /// <summary>Prepares a part: looks at it, and holds its keys.</summary>
    public void Prepare(scoped in Command command, ClusterTime time, CommandAnswer answer)
    {
        bool decodes = PrepareBody.TryRead(command.Value, out PrepareBody body);
        decodes &= TransactionBody.TryRead(body.Part, out TransactionBody part);
        InvariantException.Require(decodes, "a part that passed the door decodes");
        if (RefusalOf(in command, in body, in part, time) is { } refusal)
        {
            answer.Give(new Outcome(OutcomeStatus.ConditionFailed, 0, (long)refusal));
            return;
        }

        ByteBuffer voted = ByteBuffer.Rent();
        voted.Take(PrepareVote.Bytes);
        PrepareVote vote = _runner.Vote(in part, time, answer.IsWanted ? voted : null);
        vote.Write(voted.Array);
        bool isHeld = vote.Holds || !body.Has(PrepareFlags.OnlyIfHolds);
        if (isHeld)
        {
            Keep(in command, in body, time);
        }

        answer.Give(new Outcome(
            isHeld ? OutcomeStatus.Applied : OutcomeStatus.ConditionFailed,
            0,
            isHeld ? 0 : (long)PrepareRefusal.ConditionFailed)
        {
            HasValue = true,
            Value = voted.Written,
        });
        voted.Return();
    }

    /// <summary>
    /// Decides, unless that was done before. The outcome's number is the decision that counts. The part that is
    /// prepared here is carried out with it.
    /// </summary>
    public void Decide(scoped in Command command, ClusterTime time, CommandAnswer answer)
    {
        if (_records.Decide(in command, time) is not { } decision)
        {
            answer.Give(new Outcome(OutcomeStatus.Busy));
            return;
        }

        Row part = _records.Knows(command.Value) ? Find(command.Value) : Row.None;
        if (part.IsNone)
        {
            answer.Give(new Outcome(OutcomeStatus.Applied, 0, (long)decision));
            return;
        }

        End(part, decision, time, answer);
    }

    /// <summary>Carries out a decision for the part that is prepared here, if one is, and lets its keys go.</summary>
    public void Finish(scoped in Command command, ClusterTime time, CommandAnswer answer)
    {
        Row part = Find(command.Value);
        if (part.IsNone)
        {
            answer.Give(new Outcome(OutcomeStatus.NotFound));
            return;
        }

        End(part, (TransactionDecision)command.Number, time, answer);
    }

    /// <summary>All participants have carried out the decisions: nobody asks for them any longer.</summary>
    public void Forget(scoped in Command command, CommandAnswer answer)
    {
        bool isFound = false;
        for (ReadOnlySpan<byte> ids = command.Value; !ids.IsEmpty; ids = ids[TransactionId.Bytes..])
        {
            isFound |= _records.Forget(ids[..TransactionId.Bytes]);
        }

        answer.Give(new Outcome(isFound ? OutcomeStatus.Applied : OutcomeStatus.NotFound));
    }

    private PrepareRefusal? RefusalOf(
        scoped in Command command, scoped in PrepareBody body, scoped in TransactionBody part, ClusterTime time)
    {
        ReadOnlySpan<byte> items = part.Items;
        ReadOnlySpan<byte> id = command.Value[..TransactionId.Bytes];
        if (!Find(id).IsNone || (body.Has(PrepareFlags.Anchor) && _records.Knows(id)))
        {
            return PrepareRefusal.Over;
        }

        int keys = 0;
        while (CommandList.TryTake(ref items, out Command item))
        {
            keys++;
            if (HeldKeyGate.IsRange(in item))
            {
                // Where nobody writes, no time to live is suspended, so those that are found later are all.
                if (HeldKeyGate.AnyWritten(_store.Prepared, in item))
                {
                    return PrepareRefusal.KeyHeld;
                }

                continue;
            }

            Row row = _store.Keys.Find(item.Key, _store.Keys.HashOf(item.Key));
            bool expires = !row.IsNone && !_store.Expire(row, time) && _store.Keys[row].ExpirySlot != 0;
            if (!_store.Prepared.MayHold(item.Key, HeldKeys.IsWrite(item.Kind) || expires))
            {
                return PrepareRefusal.KeyHeld;
            }
        }

        if (!_runner.TryCountRanges(in part, time))
        {
            return PrepareRefusal.RangeTooLarge;
        }

        return _parts >= PartsMax
            || _store.Prepared.Count + keys + _runner.ExpiringInRanges.Count > KeysMax
            || _store.Prepared.Ranges + part.Ranges > RangesMax
            || _partBytes + body.Part.Length > BytesMax
            || (body.Has(PrepareFlags.Anchor) && _records.IsFull)
            ? PrepareRefusal.TooMany
            : null;
    }

    /// <summary>Writes the rows, suspends times to live, and holds the keys.</summary>
    private void Keep(scoped in Command command, scoped in PrepareBody body, ClusterTime time)
    {
        ReadOnlySpan<byte> id = command.Value[..TransactionId.Bytes];
        ClusterTime deadline = time + body.TimeoutMs;
        if (body.Has(PrepareFlags.Anchor))
        {
            _records.Create(
                id, TransactionDecision.Pending, body.AnchorKey, body.Participants, body.ParticipantList, deadline);
        }

        bool isPart = TransactionBody.TryRead(body.Part, out TransactionBody part) && !part.Items.IsEmpty;
        if (!isPart)
        {
            return;
        }

        ByteBuffer value = ByteBuffer.Rent();
        PreparedPart.WriteHeader(value, time, command.Key, body.AnchorKey, body.Part);
        PreparedPart.SetAccount(value.Array, command.Account);
        Suspend(part.Items, value);
        Span<byte> name = stackalloc byte[NameBytes];
        Name(SystemRowKind.PreparedPart, id, name);
        Row row = _store.System.Create(SystemRowKind.PreparedPart, name, value.Written);
        _store.System.SetTime(row, deadline);
        Count(value.Written, 1);
        HoldAll(PreparedPart.Read(value.Written));
        value.Return();
    }

    /// <summary>
    /// Takes the keys' times to live away for as long as they are held: nobody may see that one has passed before the
    /// transaction that found the key has taken effect.
    /// </summary>
    private void Suspend(ReadOnlySpan<byte> items, ByteBuffer value)
    {
        while (CommandList.TryTake(ref items, out Command item))
        {
            if (!HeldKeyGate.IsRange(in item))
            {
                Suspend(_store.Keys.Find(item.Key, _store.Keys.HashOf(item.Key)), value);
            }
        }

        foreach (Row row in _runner.ExpiringInRanges)
        {
            Suspend(row, value);
        }
    }

    private void Suspend(Row row, ByteBuffer value)
    {
        if (!row.IsNone && _store.Keys[row].ExpirySlot != 0)
        {
            ref readonly KeyEntry entry = ref _store.Keys[row];
            PreparedPart.AddSuspended(
                value, 0, _store.Expiry.DeadlineOf(in entry), _store.Keys.Key(in entry));
            _store.ClearDeadline(row);
        }
    }

    /// <summary>
    /// Gives the keys their times to live back. One that has passed meanwhile passes a millisecond later: what the
    /// transaction does now still finds the key.
    /// </summary>
    private void Resume(scoped in PreparedPart part, ClusterTime time)
    {
        ReadOnlySpan<byte> list = part.Suspended;
        while (PreparedPart.TryTakeSuspended(ref list, out ClusterTime deadline, out ReadOnlySpan<byte> key))
        {
            Row row = _store.Keys.Find(key, _store.Keys.HashOf(key));
            InvariantException.Require(_store.Exists(row), "a held key stays");
            _store.SetDeadline(row, ClusterTime.Max(deadline, time + 1));
        }
    }

    /// <summary>Carries out the decision for a part and frees it.</summary>
    private void End(Row row, TransactionDecision decision, ClusterTime time, CommandAnswer answer)
    {
        // The row is freed before its operations need its place; they are carried out from a copy.
        ByteBuffer copy = ByteBuffer.Rent();
        copy.Append(ValueOf(row));
        Count(copy.Written, -1);
        _store.System.Free(row);
        PreparedPart prepared = PreparedPart.Read(copy.Written);
        Resume(in prepared, time);
        ByteBuffer? outcomes = answer.IsWanted ? ByteBuffer.Rent() : null;
        if (decision is TransactionDecision.Then or TransactionDecision.Else)
        {
            bool decodes = TransactionBody.TryRead(prepared.Part, out TransactionBody part);
            InvariantException.Require(decodes, "a part that was prepared decodes");

            // Another command ends it, maybe the leader's own.
            _store.Account = prepared.Account;
            _runner.CarryOut(in part, decision == TransactionDecision.Then, time, outcomes);
        }

        foreach (HeldKey held in prepared)
        {
            if (held.IsRange)
            {
                _store.Prepared.ReleaseRange(held.Name, held.End);
            }
            else
            {
                _store.Prepared.Release(held.Name, held.IsWritten);
            }
        }

        if (outcomes is not null)
        {
            answer.Give(new Outcome(OutcomeStatus.Applied, 0, (long)decision)
            {
                HasValue = decision != TransactionDecision.Abort,
                Value = outcomes.Written,
            });
            outcomes.Return();
        }

        copy.Return();
    }

    private void HoldAll(scoped in PreparedPart part)
    {
        foreach (HeldKey held in part)
        {
            if (held.IsRange)
            {
                _store.Prepared.HoldRange(held.Name, held.End);
            }
            else
            {
                _store.Prepared.Hold(held.Name, held.IsWritten);
            }
        }
    }

    private Row Find(ReadOnlySpan<byte> id)
    {
        Span<byte> name = stackalloc byte[NameBytes];
        Name(SystemRowKind.PreparedPart, id, name);
        return _store.System.Find(name);
    }

    private ReadOnlySpan<byte> ValueOf(Row row) => _store.Keys.Value(in _store.Keys[row]);

    private void Count(ReadOnlySpan<byte> partRow, int by)
    {
        _parts += by;
        _partBytes += by * (long)partRow.Length;
    }
}
