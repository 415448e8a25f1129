using System.Runtime.CompilerServices;
using System.Text;
using Kahuna.Client.Connection;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Outcomes;
using Kahuna.Wire;
using Kahuna.Wire.Commands;

namespace Kahuna.Client.Transactions;

/// <summary>
/// A scan of an interactive transaction: the keys in the cluster together with what the transaction is to write, in
/// order. What was shown is read, and the range up to the last key that was shown is one that the commit depends on.
/// Owned by one call; not thread-safe.
/// </summary>
/// <param name="connection">The connection.</param>
/// <param name="book">The transaction's keys and ranges.</param>
/// <param name="durability">The durability of the keys.</param>
/// <param name="prefix">The start of the keys.</param>
/// <param name="options">Bounds, direction and limit.</param>
internal sealed class TransactionScan(
    ClusterConnection connection, TransactionBook book, Durability durability, string prefix, ScanOptions options)
{
    private readonly KeyRange _range = RangeBounds.Of(prefix, options.From, options.To);

    /// <summary>What the transaction is to write within the range, in order; not yet passed.</summary>
    private readonly Queue<OwnKey> _own = [];

    /// <summary>The last key that was passed; null before the first one.</summary>
    private byte[]? _last;

    /// <summary>Keys of the cluster that were passed.</summary>
    private int _found;
    private bool _isAtEnd;

    /// <summary>The keys. What is written while the scan runs, and lies ahead of it, may be missing.</summary>
    public async IAsyncEnumerable<KeyValueEntry> RunAsync([EnumeratorCancellation] CancellationToken ct)
    {
        book.RequireOpen();
        if (options.Limit < 1)
        {
            throw new ArgumentOutOfRangeException(nameof(options), options.Limit, "Limit must be 1 or greater.");
        }

        if (_range.IsEmpty)
        {
            yield break;
        }

        book.Ranges.RequireRoom();
        TakeOwn();
        long left = options.Limit ?? long.MaxValue;
        int pageSize = (int)Math.Min(options.PageSize, Math.Min(left, Limits.RangeKeysMax) + _own.Count);
        RangeScan scan = await RangeScan.OpenAsync(
            connection, durability, prefix, options with { Limit = null, PageSize = pageSize }, ct)
            .ConfigureAwait(connection.CapturesContext);
        try
        {
            KeyValueEntry? next = await scan.NextAsync(ct).ConfigureAwait(connection.CapturesContext);
            while (left > 0)
            {
                book.RequireOpen();
                _isAtEnd = next is null && _own.Count == 0;
                if (_isAtEnd)
                {
                    break;
                }

                TransactionKey key;
                if (TakesOwn(next))
                {
                    OwnKey own = _own.Dequeue();
                    (_last, key) = (own.Name, own.Key);
                }
                else
                {
                    key = Pass(next!.Value);
                    next = await scan.NextAsync(ct).ConfigureAwait(connection.CapturesContext);
                }

                if (key.Exists)
                {
                    left--;
                    yield return Show(key);
                }
            }
        }
        finally
        {
            scan.End();
            if (Covered() is { } covered)
            {
                book.Ranges.Add(new TransactionRange(prefix, durability, covered, _found));
            }
        }
    }

    private KeyValueEntry Show(TransactionKey key)
    {
        GetResult shown = key.Shown;
        return new KeyValueEntry
        {
            Key = key.Name,
            Value = options.KeysOnly ? KahunaValue.Null : shown.Value,
            Revision = shown.Revision,
        };
    }

    /// <summary>Reads a key of the cluster, and passes it among the transaction's own.</summary>
    private TransactionKey Pass(in KeyValueEntry entry)
    {
        byte[] name = Encoding.UTF8.GetBytes(entry.Key);
        if (_own.TryPeek(out OwnKey? own) && own.Name.AsSpan().SequenceEqual(name))
        {
            _own.Dequeue();
        }

        TransactionKey key = book.Of(entry.Key, durability);
        key.Scanned(entry.Revision, options.KeysOnly ? default(KahunaValue?) : entry.Value);
        _last = name;
        _found++;
        return key;
    }

    /// <summary>The transaction's next own key comes before the next one of the cluster.</summary>
    private bool TakesOwn(in KeyValueEntry? next)
    {
        if (next is not { } entry || !_own.TryPeek(out OwnKey? own))
        {
            return next is null;
        }

        int sign = own.Name.AsSpan().SequenceCompareTo(Encoding.UTF8.GetBytes(entry.Key));
        return options.Descending ? sign > 0 : sign < 0;
    }

    private void TakeOwn()
    {
        IEnumerable<OwnKey> own = book.Keys
            .Where(key => key.Durability == durability && key.IsWritten)
            .Select(static key => new OwnKey(Encoding.UTF8.GetBytes(key.Name), key))
            .Where(key => _range.Contains(key.Name));
        Comparer<byte[]> order = Comparer<byte[]>.Create(
            static (one, other) => one.AsSpan().SequenceCompareTo(other));
        foreach (OwnKey key in options.Descending
            ? own.OrderByDescending(static key => key.Name, order)
            : own.OrderBy(static key => key.Name, order))
        {
            _own.Enqueue(key);
        }
    }

    /// <summary>What was looked at; null: nothing.</summary>
    private KeyRange? Covered() =>
        _isAtEnd ? _range
        : _last is null ? null
        : options.Descending ? _range with { Start = _last }
        : _range with { End = KeyRange.Behind(_last) };

    /// <summary>A key that the transaction is to write.</summary>
    private sealed record OwnKey(byte[] Name, TransactionKey Key);
}
