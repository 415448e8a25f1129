using System.Buffers.Binary;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.State.Rows;

/// <summary>
/// Deleted keys of which nothing is kept any more, and what is left of those that were forgotten: one revision for all
/// of them. A key without a row begins above it, so that no revision of a name ever comes again. Which keys wait
/// follows from the rows, so it is not stored. Owned by one <see cref="KeyStore"/>; not thread-safe.
/// </summary>
internal sealed class ForgottenKeys(KeyStore store, StateLimits limits)
{
    private static readonly byte[] s_firstRevisionName = SystemRowKind.FirstRevision.ToName();

    /// <summary>The lowest row goes first, so that nodes which were loaded and nodes which were not agree.</summary>
    private readonly FreeRows _waiting = new();

    /// <summary>
    /// The revision that a key without a row gets when it is written: 1 but in later epochs of ephemeral groups, and
    /// above that of every key that was forgotten or had to go.
    /// </summary>
    public long FirstRevision { get; private set; } = limits.FirstRevision;

    /// <summary>Keys that wait to be forgotten.</summary>
    public int Waiting => _waiting.Count;

    /// <summary>Nothing is kept any more of a deleted key.</summary>
    public void Add(int key) => _waiting.Add(key);

    /// <summary>A deleted key of which nothing is kept is written again, or gone.</summary>
    public void Remove(int key) => _waiting.Remove(key);

    /// <summary>Forgets at most so many of the keys that wait.</summary>
    public void Forget(int countMax)
    {
        while (countMax-- > 0 && _waiting.First is var key and not 0)
        {
            InvariantException.Require(
                store.Keys[key] is { IsDeleted: true, HistoryCount: 0 }, "only deleted keys without history wait");
            store.Forget(key);
        }
    }

    /// <summary>A key is gone that had this revision.</summary>
    public void Raise(long revision)
    {
        if (revision < FirstRevision)
        {
            return;
        }

        FirstRevision = revision + 1;
        Span<byte> value = stackalloc byte[sizeof(long)];
        BinaryPrimitives.WriteInt64LittleEndian(value, FirstRevision);
        int row = store.System.Find(s_firstRevisionName);
        if (row == 0)
        {
            store.System.Create(SystemRowKind.FirstRevision, s_firstRevisionName, value);
        }
        else
        {
            store.System.Rewrite(row, value);
        }
    }

    /// <summary>Everything was loaded.</summary>
    public void FinishLoading()
    {
        int row = store.System.Find(s_firstRevisionName);
        FirstRevision = row == 0
            ? FirstRevision
            : BinaryPrimitives.ReadInt64LittleEndian(store.Keys.Value(in store.Keys[row]));
        for (int key = 1; key <= store.Keys.Count; key++)
        {
            if (store.Keys[key] is { IsDeleted: true, HistoryCount: 0 })
            {
                _waiting.Add(key);
            }
        }
    }
}
