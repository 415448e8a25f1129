using System.Globalization;
using Kahuna.Client.Outcomes;
using Kahuna.Wire;

namespace Kahuna.Client.Transactions;

/// <summary>
/// The keys and ranges of an interactive transaction, and where it is in its life. Owned by one
/// <see cref="Transaction"/>; not thread-safe.
/// </summary>
internal sealed class TransactionBook
{
    private readonly TimeProvider _time;
    private readonly TimeSpan _timeout;
    private readonly long _began;
    private readonly Dictionary<(string Name, Durability Durability), TransactionKey> _byName = [];
    private readonly List<TransactionKey> _inOrder = [];

    public TransactionBook(TimeProvider time, TimeSpan timeout)
    {
        _time = time;
        _timeout = timeout;
        _began = time.GetTimestamp();
    }

    /// <summary>Where the transaction is.</summary>
    public TransactionState State { get; set; }

    /// <summary>The ranges that the commit depends on.</summary>
    public TransactionRanges Ranges { get; } = new();

    /// <summary>What is left of its time; negative when it is over.</summary>
    public TimeSpan Left => _timeout - _time.GetElapsedTime(_began);

    /// <summary>The keys, in the order in which they were named first.</summary>
    public IReadOnlyList<TransactionKey> Keys => _inOrder;

    /// <summary>The keys that the commit depends on.</summary>
    public TransactionKey[] Read => [.. _inOrder.Where(static key => key.WasRead)];

    /// <summary>The key; a new one when it was not named before.</summary>
    public TransactionKey Of(string name, Durability durability)
    {
        ArgumentNullException.ThrowIfNull(name);
        if (_byName.TryGetValue((name, durability), out TransactionKey? key))
        {
            return key;
        }

        if (_inOrder.Count == Limits.TransactionItemsMax)
        {
            throw OperationErrors.BadArgument(string.Create(
                CultureInfo.InvariantCulture,
                $"the transaction has {Limits.TransactionItemsMax:N0} keys, the limit; nothing was written"));
        }

        key = new TransactionKey(name, durability);
        _byName.Add((name, durability), key);
        _inOrder.Add(key);
        return key;
    }

    /// <summary>An older transaction stood in the way: this one is over.</summary>
    public void Conflict() => State = State == TransactionState.Open ? TransactionState.Conflicted : State;

    /// <exception cref="KahunaException">TransactionEnded: it takes no more calls.</exception>
    public void RequireOpen()
    {
        if (State == TransactionState.Open && _time.GetElapsedTime(_began) >= _timeout)
        {
            State = TransactionState.TimedOut;
        }

        if (State != TransactionState.Open)
        {
            throw OperationErrors.TransactionEnded(State switch
            {
                TransactionState.Committed => "The transaction was committed before; this call did nothing.",
                TransactionState.RolledBack => "The transaction was rolled back; nothing was written.",
                TransactionState.Conflicted =>
                    "The transaction has met an older one and was rolled back; nothing was written.",
                TransactionState.TimedOut => string.Create(
                    CultureInfo.InvariantCulture,
                    $"The transaction was not committed within {_timeout.TotalSeconds:0.###} s, its timeout; "
                        + $"nothing was written."),
                _ => "The commit of the transaction has failed, or is under way; this call did nothing.",
            });
        }
    }
}

/// <summary>Where a transaction is in its life. Not stored.</summary>
internal enum TransactionState
{
    /// <summary>It takes reads and writes.</summary>
    Open,

    /// <summary>It was committed.</summary>
    Committed,

    /// <summary>It was rolled back.</summary>
    RolledBack,

    /// <summary>It was rolled back, because an older transaction stood in the way.</summary>
    Conflicted,

    /// <summary>It was not committed in time.</summary>
    TimedOut,

    /// <summary>Its commit is under way, or has failed.</summary>
    Failed,
}
