using System.Buffers.Binary;
using Kahuna.Client.Wire.Buffers;
using Kahuna.Client.Wire.Commands;
using Kahuna.Client.Wire.Outcomes;

namespace Kahuna.Server.State.Sequences;

/// <summary>
/// The sequences of one partition: rows named <c>0xFF Q name</c>, whose value is the sequence's form, <c>i64 latest value, u8 1 when there is one, u64 incarnation</c>. The number of the latest
/// incarnation of any sequence is the row <c>0xFF I</c>. Each allocation is one command, so that values leave no gaps. Owned by one <see cref="StateMachine"/>; not thread-safe.
/// </summary>
internal sealed class SequenceTable(KeyStore store)
{
    /// <summary>Sequences that one page of a list looks at, and bytes after which it is full: bounded work per read.</summary>
    private const int RowsPerPage = 8192;
    private const int BytesPerPage = 64 * 1024;

    private const byte Reserved = 0xFF;
    private const byte Sequence = (byte)'Q';
    private const byte Incarnations = (byte)'I';
    private const int NamePrefix = 2;
    private const int LatestAt = SequenceForm.Bytes;
    private const int StartedAt = LatestAt + sizeof(long);
    private const int IncarnationAt = StartedAt + 1;
    private const int ValueBytes = IncarnationAt + sizeof(ulong);

    /// <summary>Bytes that are told of a sequence.</summary>
    private const int ToldBytes = IncarnationAt;

    /// <summary>The sequence's number among all that there ever were here; 0 when there is none of the name.</summary>
    public ulong IncarnationOf(ReadOnlySpan<byte> name) =>
        Find(name) is var row and not 0 ? BinaryPrimitives.ReadUInt64LittleEndian(store.Keys.Value(in store.Keys[row])[IncarnationAt..]) : 0;

    /// <summary>Carries out a command about a sequence that exists or is to be.</summary>
    public Outcome Apply(scoped in Command command)
    {
        int row = Find(command.Key);
        if (command.Kind == CommandKind.SequenceCreate)
        {
            return row == 0 ? Create(in command) : new Outcome(OutcomeStatus.ConditionFailed);
        }

        if (row == 0)
        {
            return new Outcome(OutcomeStatus.NotFound);
        }

        if (command.Kind == CommandKind.SequenceDelete)
        {
            store.System.Free(row);
            return new Outcome(OutcomeStatus.Applied);
        }

        return command.Kind == CommandKind.SequenceUpdate ? Update(row, in command) : Next(row, command.Number);
    }

    /// <summary>What a sequence is like and how far it is.</summary>
    public void Get(ReadOnlySpan<byte> name, ByteBuffer outcome)
    {
        int row = Find(name);
        Outcome answer = new(row == 0 ? OutcomeStatus.NotFound : OutcomeStatus.Found);
        if (row != 0)
        {
            answer.HasValue = true;
            answer.Value = store.Keys.Value(in store.Keys[row])[..ToldBytes];
        }

        answer.Write(outcome);
    }

    /// <summary>
    /// The sequences whose names begin with a prefix, in no order, from a row on: <c>u16 length of the name, name, what is told</c> for each. The number of the outcome is the row at which to go on, 0 at the end.
    /// What is there all the time while pages are taken is in exactly one of them.
    /// </summary>
    public void List(ReadOnlySpan<byte> prefix, long from, ByteBuffer outcome)
    {
        ByteBuffer page = ByteBuffer.Rent();
        RowSet rows = store.System.Sequences;
        int row = rows.Next((int)Math.Clamp(from, 1, int.MaxValue));
        for (int looked = 0; row != 0 && looked < RowsPerPage && page.Length < BytesPerPage; looked++, row = rows.Next(row + 1))
        {
            ref readonly KeyEntry entry = ref store.Keys[row];
            ReadOnlySpan<byte> name = store.Keys.Key(in entry)[NamePrefix..];
            if (!name.StartsWith(prefix))
            {
                continue;
            }

            BinaryPrimitives.WriteUInt16LittleEndian(page.Take(sizeof(ushort)), (ushort)name.Length);
            page.Append(name);
            page.Append(store.Keys.Value(in entry)[..ToldBytes]);
        }

        new Outcome(OutcomeStatus.Found, 0, row) { HasValue = true, Value = page.Written }.Write(outcome);
        page.Return();
    }

    private Outcome Create(scoped in Command command)
    {
        Span<byte> name = stackalloc byte[NamePrefix + Client.Wire.Limits.KeyBytesMax];
        name = NameOf(command.Key, name);
        Span<byte> value = stackalloc byte[ValueBytes];
        value.Clear();
        command.Value.CopyTo(value);
        BinaryPrimitives.WriteUInt64LittleEndian(value[IncarnationAt..], NextIncarnation());
        store.System.Create(name, value, KeyEntryFlags.None);
        return new Outcome(OutcomeStatus.Applied);
    }

    private Outcome Update(int row, scoped in Command command)
    {
        SequenceForm.TryRead(command.Value, out SequenceForm change);
        Span<byte> value = stackalloc byte[ValueBytes];
        store.Keys.Value(in store.Keys[row]).CopyTo(value);
        SequenceForm.TryRead(value, out SequenceForm form);
        form.Increment = (change.Mask & SequenceForm.ChangesIncrement) != 0 ? change.Increment : form.Increment;
        form.Min = (change.Mask & SequenceForm.ChangesMin) != 0 ? change.Min : form.Min;
        form.Max = (change.Mask & SequenceForm.ChangesMax) != 0 ? change.Max : form.Max;
        form.Cycles = (change.Mask & SequenceForm.ChangesCycle) != 0 ? change.Cycles : form.Cycles;
        long present = value[StartedAt] != 0 ? BinaryPrimitives.ReadInt64LittleEndian(value[LatestAt..]) : form.Initial;
        if (form.Min > form.Max || present < form.Min || present > form.Max)
        {
            return new Outcome(OutcomeStatus.OutOfBounds, 0, present);
        }

        form.Write(value);
        store.System.Rewrite(row, value);
        return new Outcome(OutcomeStatus.Applied);
    }

    private Outcome Next(int row, long count)
    {
        Span<byte> value = store.Keys.Writable(in store.Keys[row]);
        SequenceForm.TryRead(value, out SequenceForm form);
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
            return new Outcome(OutcomeStatus.Exhausted, 0, (long)Int128.Min(left, long.MaxValue));
        }

        long latest = (long)(first + ((Int128)(count - 1) * form.Increment));
        Span<byte> changed = stackalloc byte[ValueBytes];
        value.CopyTo(changed);
        BinaryPrimitives.WriteInt64LittleEndian(changed[LatestAt..], latest);
        changed[StartedAt] = 1;
        store.System.Rewrite(row, changed);
        return new Outcome(OutcomeStatus.Applied, latest, (long)first);
    }

    /// <summary>How many values there are from the first on up to the bound.</summary>
    private static Int128 Left(Int128 first, Int128 bound, long increment)
    {
        Int128 way = increment > 0 ? bound - first : first - bound;
        return way < 0 ? 0 : (way / Int128.Abs(increment)) + 1;
    }

    private ulong NextIncarnation()
    {
        ReadOnlySpan<byte> name = [Reserved, Incarnations];
        int row = store.Keys.Find(name, store.Keys.HashOf(name));
        Span<byte> value = stackalloc byte[sizeof(ulong)];
        ulong next = 1 + (row == 0 ? 0 : BinaryPrimitives.ReadUInt64LittleEndian(store.Keys.Value(in store.Keys[row])));
        BinaryPrimitives.WriteUInt64LittleEndian(value, next);
        if (row == 0)
        {
            store.System.Create(name, value, KeyEntryFlags.None);
        }
        else
        {
            store.System.Rewrite(row, value);
        }

        return next;
    }

    private int Find(ReadOnlySpan<byte> key)
    {
        Span<byte> name = stackalloc byte[NamePrefix + Client.Wire.Limits.KeyBytesMax];
        name = NameOf(key, name);
        return store.Keys.Find(name, store.Keys.HashOf(name));
    }

    private static Span<byte> NameOf(ReadOnlySpan<byte> key, Span<byte> scratch)
    {
        scratch[0] = Reserved;
        scratch[1] = Sequence;
        key.CopyTo(scratch[NamePrefix..]);
        return scratch[..(NamePrefix + key.Length)];
    }
}
