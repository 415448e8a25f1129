using System.Buffers.Binary;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.State.Locks;

/// <summary>
/// Answers what is asked about locks (<see cref="Wire.Outcomes.LockSnapshot"/>). Stateless; for the owner of the store.
/// </summary>
internal static class LockReader
{
    /// <summary>
    /// Locks that one page of a list looks at, and bytes after which it is full: bounded work per read.
    /// </summary>
    private const int RowsPerPage = 8192;
    private const int BytesPerPage = 64 * 1024;

    /// <summary>Holders after which the picture of a lock is full.</summary>
    private const int HoldersPerPicture = 256;

    /// <summary>
    /// Answers a read. False when it may be held back, because there is nothing to say yet; it is answered all the
    /// same.
    /// </summary>
    public static bool Read(
        KeyStore store, LockTable locks, scoped in Command command, ClusterTime now, ByteBuffer outcome)
    {
        switch (command.Kind)
        {
            case CommandKind.LockAwait:
                return Await(store, locks, new LockAwait(in command), now, outcome);
            case CommandKind.LockList:
                List(store, locks, new PageRequest(in command), now, outcome);
                return true;
            case CommandKind.LockObserve:
                Get(store, locks, command.Key, now, outcome);
                return locks.CurrentToken(command.Key) != new LockObserve(in command).KnownToken;
            default:
                Get(store, locks, command.Key, now, outcome);
                return true;
        }
    }

    private static bool Await(
        KeyStore store, LockTable locks, scoped in LockAwait asked, ClusterTime now, ByteBuffer outcome)
    {
        Row row = locks.Rows.Find(asked.Resource);
        Row claim = row.IsNone ? Row.None : locks.Rows.FindClaim(row, asked.Owner);
        if (claim.IsNone || locks.Rows.ClaimAt(claim).Token != asked.Token)
        {
            new Outcome(OutcomeStatus.NotFound).Write(outcome);
            return true;
        }

        bool isHeld = store.Keys[claim].IsHeld;
        Span<byte> nowBytes = stackalloc byte[sizeof(long)];
        BinaryPrimitives.WriteInt64LittleEndian(nowBytes, now.Ms);
        scoped Outcome answer = isHeld
            ? LockOutcome.HeldUntil(asked.Token, store.DeadlineOf(in store.Keys[claim]).Ms)
            : LockOutcome.Queued(asked.Token, now.Ms);
        answer.HasValue = true;
        answer.Value = nowBytes;
        answer.Write(outcome);
        return isHeld;
    }

    private static void Get(
        KeyStore store, LockTable locks, ReadOnlySpan<byte> name, ClusterTime now, ByteBuffer outcome)
    {
        Row row = locks.Rows.Find(name);
        if (row.IsNone)
        {
            new Outcome(OutcomeStatus.NotFound, 0, now.Ms).Write(outcome);
            return;
        }

        ByteBuffer picture = ByteBuffer.Rent();
        Draw(store, locks, row, now, picture);
        new Outcome(OutcomeStatus.Found, locks.CurrentToken(name).Value, now.Ms)
        {
            HasValue = true,
            Value = picture.Written,
        }.Write(outcome);
        picture.Return();
    }

    /// <summary>
    /// Locks whose names begin with a prefix, in no order, from a row on; the number of the outcome is the row at which
    /// to go on, 0 at the end.
    /// </summary>
    private static void List(
        KeyStore store, LockTable locks, scoped in PageRequest asked, ClusterTime now, ByteBuffer outcome)
    {
        ByteBuffer page = ByteBuffer.Rent();
        RowSet rows = store.System.Of(SystemRowKind.Lock);
        Row row = rows.Next(new Row((int)Math.Clamp(asked.Cursor, 1, int.MaxValue)));
        for (int looked = 0;
            !row.IsNone && looked < RowsPerPage && page.Length < BytesPerPage;
            looked++, row = rows.Next(row.Next))
        {
            ReadOnlySpan<byte> name = LockRows.NameIn(store.Keys.Key(in store.Keys[row]));
            if (!name.StartsWith(asked.Prefix))
            {
                continue;
            }

            BinaryPrimitives.WriteUInt16LittleEndian(page.Take(sizeof(ushort)), (ushort)name.Length);
            page.Append(name);
            Draw(store, locks, row, now, page);
        }

        PageOutcome.Of(page.Written, row.Value).Write(outcome);
        page.Return();
    }

    private static void Draw(KeyStore store, LockTable locks, Row row, ClusterTime now, ByteBuffer target)
    {
        LockRow at = locks.Rows.LockAt(row);
        int told = Math.Min(at.Holders, HoldersPerPicture);
        LockSnapshot.WriteHeader(target, at.Permits, at.Waiters, at.Holders, told);
        Row claim = at.FirstHolder;
        for (int i = 0; i < told; i++)
        {
            ClaimRow held = locks.Rows.ClaimAt(claim);
            ref readonly KeyEntry entry = ref store.Keys[claim];
            LockSnapshot.WriteHolder(
                target,
                held.Mode,
                held.Token.Value,
                store.DeadlineOf(in entry) - now,
                store.Keys.Key(in entry)[ClaimRow.OwnerAt..],
                held.Note);
            claim = held.After;
        }
    }
}
