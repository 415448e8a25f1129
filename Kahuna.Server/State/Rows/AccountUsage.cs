using Kahuna.Server.Primitives;

namespace Kahuna.Server.State.Rows;

/// <summary>
/// How many keys of a partition each account wrote last, and how many bytes their names and present values have
/// (docs/adr/0045-quotas-per-user.md). It follows from the rows, so it is not stored. Changed by the loop that owns the
/// <see cref="KeyStore"/>; read by any thread, which may see keys and bytes of different moments.
/// </summary>
/// <remarks>
/// Reads need no lock: a word of 64 bits is read and written whole, and who sees a page sees it zeroed, because a
/// reference is published after what it refers to (.NET memory model).
/// </remarks>
internal sealed class AccountUsage
{
    /// <summary>A row with one of these is charged to nobody.</summary>
    public const KeyEntryFlags Uncharged = KeyEntryFlags.Deleted | KeyEntryFlags.Free | KeyEntryFlags.System;

    private const int PerPageLog2 = 8;

    /// <summary>A page is made when one of its accounts writes for the first time, and stays.</summary>
    private readonly Used[]?[] _pages = new Used[]?[(ushort.MaxValue + 1) >> PerPageLog2];

    /// <summary>Keys of an account.</summary>
    public long Keys(ushort account) =>
        _pages[account >> PerPageLog2] is { } page ? Of(page, account).Keys : 0;

    /// <summary>Bytes of the names and present values of an account's keys.</summary>
    public long Bytes(ushort account) =>
        _pages[account >> PerPageLog2] is { } page ? Of(page, account).Bytes : 0;

    /// <summary>A key becomes the account's.</summary>
    public void Add(ushort account, int bytes) => Change(account, 1, bytes);

    /// <summary>A key is no longer the account's.</summary>
    public void Remove(ushort account, int bytes) => Change(account, -1, -bytes);

    /// <summary>
    /// True when it says what a count of the rows gives. Linear in the state's size; for checks, on the owner's thread.
    /// </summary>
    public bool Matches(KeyStore store)
    {
        AccountUsage counted = new();
        for (Row row = Row.First; row.Value <= store.Keys.Count; row = row.Next)
        {
            ref readonly KeyEntry entry = ref store.Keys[row];
            if (entry.Account != 0)
            {
                if ((entry.Flags & Uncharged) != 0)
                {
                    return false;
                }

                counted.Add(entry.Account, entry.BlockLength);
            }
        }

        for (int account = 1; account <= ushort.MaxValue; account++)
        {
            if (Keys((ushort)account) != counted.Keys((ushort)account)
                || Bytes((ushort)account) != counted.Bytes((ushort)account))
            {
                return false;
            }
        }

        return true;
    }

    private void Change(ushort account, int keys, int bytes)
    {
        // One thread writes, so no write is lost.
        ref Used used = ref Of(_pages[account >> PerPageLog2] ??= new Used[1 << PerPageLog2], account);
        used.Keys += keys;
        used.Bytes += bytes;
        InvariantException.Require(used is { Keys: >= 0, Bytes: >= 0 }, "what an account gives back was charged to it");
    }

    private static ref Used Of(Used[] page, ushort account) => ref page[account & ((1 << PerPageLog2) - 1)];

    private struct Used
    {
        public long Keys;
        public long Bytes;
    }
}
