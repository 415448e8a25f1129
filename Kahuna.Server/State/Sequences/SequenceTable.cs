using System.Buffers.Binary;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.Dispatch;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.State.Sequences;

/// <summary>
/// The sequences of one partition: rows named <c>0xFF Q name</c>, whose value is the sequence's form,
/// <c>i64 latest value, u8 1 when there is one, u64 incarnation</c>. The number of the latest incarnation of any
/// sequence is the row <c>0xFF I</c>. Each allocation is one command, so that values leave no gaps. Owned by one
/// <see cref="StateMachine"/>; not thread-safe.
/// </summary>
internal sealed class SequenceTable(KeyStore store) : CommandHandler
{
    /// <summary>
    /// Sequences that one page of a list looks at, and bytes after which it is full: bounded work per read.
    /// </summary>
    private const int RowsPerPage = 8192;
    private const int BytesPerPage = 64 * 1024;

    private const int LatestAt = SequenceBody.Bytes;
    private const int StartedAt = LatestAt + sizeof(long);
    private const int IncarnationAt = StartedAt + 1;
    private const int ValueBytes = IncarnationAt + sizeof(ulong);

    /// <summary>Bytes that are told of a sequence.</summary>
    private const int ToldBytes = IncarnationAt;

    private static readonly byte[] s_latestName = SystemRowKind.LatestIncarnation.ToName();

    /// <summary>Sequences that exist.</summary>
    public int Count => store.System.Of(SystemRowKind.Sequence).Count;

    /// <summary>The sequence's number among all that there ever were here; 0 when there is none of the name.</summary>
    public ulong IncarnationOf(ReadOnlySpan<byte> name) =>
        Find(name) is { IsNone: false } row
            ? BinaryPrimitives.ReadUInt64LittleEndian(store.Keys.Value(in store.Keys[row])[IncarnationAt..])
            : 0;

    /// <inheritdoc/>
    public override void Apply(scoped in Command command, ClusterTime time, KnownHash known, CommandAnswer answer)
    {
        Outcome outcome = Apply(in command);
        if (command.Has(CommandFlags.Keyed) && outcome.Status != OutcomeStatus.Applied)
        {
            // A key that got nothing may ask again.
            answer.ForgetNumber();
        }

        answer.Give(in outcome);
    }

    /// <inheritdoc/>
    public override bool Read(
        scoped in Command command, ClusterTime time, ClusterTime now, KnownHash known, ByteBuffer outcome)
    {
        if (command.Kind == CommandKind.SequenceList)
        {
            List(new PageRequest(in command), outcome);
        }
        else
        {
            Get(command.Key, outcome);
        }

        return true;
    }

    private Outcome Apply(scoped in Command command)
    {
        Row row = Find(command.Key);
        if (command.Kind == CommandKind.SequenceCreate)
        {
            return row.IsNone ? Create(in command) : new Outcome(OutcomeStatus.ConditionFailed);
        }

        if (row.IsNone)
        {
            return new Outcome(OutcomeStatus.NotFound);
        }

        if (command.Kind == CommandKind.SequenceDelete)
        {
            store.System.Free(row);
            return new Outcome(OutcomeStatus.Applied);
        }

        return command.Kind == CommandKind.SequenceUpdate
            ? Update(row, in command)
            : Next(row, new SequenceNext(in command).Count);
    }

    /// <summary>What a sequence is like and how far it is.</summary>
    private void Get(ReadOnlySpan<byte> name, ByteBuffer outcome)
    {
        Row row = Find(name);
        Outcome answer = new(row.IsNone ? OutcomeStatus.NotFound : OutcomeStatus.Found);
        if (!row.IsNone)
        {
            answer.HasValue = true;
            answer.Value = store.Keys.Value(in store.Keys[row])[..ToldBytes];
        }

        answer.Write(outcome);
    }

    /// <summary>
    /// The sequences whose names begin with a prefix, in no order, from a row on:
    /// <c>u16 length of the name, name, what is told</c> for each. The number of the outcome is the row at which to go
    /// on, 0 at the end. What is there all the time while pages are taken is in exactly one of them.
    /// </summary>
    private void List(scoped in PageRequest asked, ByteBuffer outcome)
    {
        ByteBuffer page = ByteBuffer.Rent();
        RowSet rows = store.System.Of(SystemRowKind.Sequence);
        Row row = rows.Next(new Row((int)Math.Clamp(asked.Cursor, 1, int.MaxValue)));
        for (int looked = 0;
            !row.IsNone && looked < RowsPerPage && page.Length < BytesPerPage;
            looked++, row = rows.Next(row.Next))
        {
            ref readonly KeyEntry entry = ref store.Keys[row];
            ReadOnlySpan<byte> name = store.Keys.Key(in entry)[SystemRowKind.PrefixBytes..];
            if (!name.StartsWith(asked.Prefix))
            {
                continue;
            }

            BinaryPrimitives.WriteUInt16LittleEndian(page.Take(sizeof(ushort)), (ushort)name.Length);
            page.Append(name);
            page.Append(store.Keys.Value(in entry)[..ToldBytes]);
        }

        PageOutcome.Of(page.Written, row.Value).Write(outcome);
        page.Return();
    }

    private Outcome Create(scoped in Command command)
    {
        Span<byte> name = stackalloc byte[SystemRowKind.PrefixBytes + Wire.Limits.KeyBytesMax];
        name = NameOf(command.Key, name);
        Span<byte> value = stackalloc byte[ValueBytes];
        value.Clear();
        command.Value.CopyTo(value);
        BinaryPrimitives.WriteUInt64LittleEndian(value[IncarnationAt..], NextIncarnation());
        store.System.Create(SystemRowKind.Sequence, name, value);
        return new Outcome(OutcomeStatus.Applied);
    }

    private Outcome Update(Row row, scoped in Command command)
    {
        SequenceBody.TryRead(command.Value, out SequenceBody change);
        Span<byte> value = stackalloc byte[ValueBytes];
        store.Keys.Value(in store.Keys[row]).CopyTo(value);
        SequenceBody.TryRead(value, out SequenceBody form);
        form.Increment = (change.Mask & SequenceBody.ChangesIncrement) != 0 ? change.Increment : form.Increment;
        form.Min = (change.Mask & SequenceBody.ChangesMin) != 0 ? change.Min : form.Min;
        form.Max = (change.Mask & SequenceBody.ChangesMax) != 0 ? change.Max : form.Max;
        form.Cycles = (change.Mask & SequenceBody.ChangesCycle) != 0 ? change.Cycles : form.Cycles;
        long present = value[StartedAt] != 0 ? BinaryPrimitives.ReadInt64LittleEndian(value[LatestAt..]) : form.Initial;
        if (form.Min > form.Max || present < form.Min || present > form.Max)
        {
            return SequenceOutcome.OutOfBounds(present);
        }

        form.Write(value);
        store.System.Rewrite(row, value);
        return new Outcome(OutcomeStatus.Applied);
    }

    private Outcome Next(Row row, long count)
    {
        Span<byte> value = store.Keys.Writable(in store.Keys[row]);
        SequenceBody.TryRead(value, out SequenceBody form);
        Int128 bound = form.Increment > 0 ? form.Max : form.Min;
        Int128 first = form.Initial;
        if (value[StartedAt] != 0)
        {
            first = (Int128)BinaryPrimitives.ReadInt64LittleEndian(value[LatestAt..]) + form.Increment;
            if (form.Cycles && Left(first, bound, form.Increment) == 0)
            {
                first = form.Increment > 0 ? form.Min : form.Max;
            }
        }

        Int128 left = Left(first, bound, form.Increment);
        if (left < count)
        {
            return SequenceOutcome.Exhausted((long)Int128.Min(left, long.MaxValue));
        }

        Int128 last = first + ((Int128)(count - 1) * form.Increment);
        InvariantException.Require(last >= form.Min && last <= form.Max, "a sequence stays within its bounds");
        long latest = (long)last;
        Span<byte> changed = stackalloc byte[ValueBytes];
        value.CopyTo(changed);
        BinaryPrimitives.WriteInt64LittleEndian(changed[LatestAt..], latest);
        changed[StartedAt] = 1;
        store.System.Rewrite(row, changed);
        return SequenceOutcome.Taken((long)first, latest);
    }

    /// <summary>How many values there are from the first on up to the bound.</summary>
    private static Int128 Left(Int128 first, Int128 bound, long increment)
    {
        Int128 way = increment > 0 ? bound - first : first - bound;
        return way < 0 ? 0 : (way / Int128.Abs(increment)) + 1;
    }

    private ulong NextIncarnation()
    {
        Row row = store.System.Find(s_latestName);
        Span<byte> value = stackalloc byte[sizeof(ulong)];
        ulong next = 1
            + (row.IsNone ? 0 : BinaryPrimitives.ReadUInt64LittleEndian(store.Keys.Value(in store.Keys[row])));
        BinaryPrimitives.WriteUInt64LittleEndian(value, next);
        if (row.IsNone)
        {
            store.System.Create(SystemRowKind.LatestIncarnation, s_latestName, value);
        }
        else
        {
            store.System.Rewrite(row, value);
        }

        return next;
    }

    private Row Find(ReadOnlySpan<byte> key)
    {
        Span<byte> name = stackalloc byte[SystemRowKind.PrefixBytes + Wire.Limits.KeyBytesMax];
        name = NameOf(key, name);
        return store.System.Find(name);
    }

    private static Span<byte> NameOf(ReadOnlySpan<byte> key, Span<byte> scratch)
    {
        SystemRowKind.Sequence.WritePrefix(scratch);
        key.CopyTo(scratch[SystemRowKind.PrefixBytes..]);
        return scratch[..(SystemRowKind.PrefixBytes + key.Length)];
    }
}
