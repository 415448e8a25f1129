using System.Globalization;
using Kahuna.Client.Outcomes;

namespace Kahuna.Client.Transactions;

/// <summary>
/// What a transaction has read of a key, and what it is to write. Owned by one <see cref="Transaction"/>; not
/// thread-safe.
/// </summary>
internal sealed class TransactionKey(string name, Durability durability)
{
    private bool _found;
    private Revision _revision;
    private KahunaValue? _value;
    private TimeSpan? _remaining;

    /// <summary>The remaining time is known: a scan does not tell it.</summary>
    private bool _knowsRemaining;
    private Pending _pending;
    private KahunaValue _written;
    private TimeSpan? _ttl;
    private long _amount;

    /// <summary>The key.</summary>
    public string Name => name;

    /// <summary>Its durability.</summary>
    public Durability Durability => durability;

    /// <summary>The commit depends on what was read.</summary>
    public bool WasRead { get; private set; }

    /// <summary>It was read, and exists in the cluster.</summary>
    public bool WasFound => WasRead && _found;

    /// <summary>The commit writes a value, so the key exists as far as this transaction sees.</summary>
    public bool IsWritten => _pending is Pending.Set or Pending.Increment;

    /// <summary>What is shown needs the value in the cluster.</summary>
    public bool NeedsValue => NeedsCluster && !(WasRead && (!_found || (_value is not null && _knowsRemaining)));

    /// <summary>What is shown needs to know whether the key exists in the cluster.</summary>
    public bool NeedsLook => NeedsCluster && !WasRead;

    /// <summary>The key exists, as far as this transaction sees.</summary>
    public bool Exists => _pending switch
    {
        Pending.Set or Pending.Increment => true,
        Pending.Delete => false,
        _ => _found,
    };

    /// <summary>The key as this transaction sees it.</summary>
    public GetResult Shown => _pending switch
    {
        Pending.Set => new GetResult { Found = true, Value = _written, RemainingTtl = _ttl },
        Pending.Increment => new GetResult { Found = true, Value = _written, RemainingTtl = _remaining },
        Pending.Delete => default,
        _ => new GetResult
        {
            Found = _found,
            Value = _value ?? KahunaValue.Null,
            Revision = _revision,
            RemainingTtl = _pending == Pending.Extend && _found ? (_ttl == TimeSpan.Zero ? null : _ttl) : _remaining,
        },
    };

    private bool NeedsCluster => _pending is Pending.None or Pending.Extend;

    /// <summary>The key was read in the cluster; without the value when that was not asked for.</summary>
    /// <exception cref="KahunaException">TransactionConflict: it is not as it was read before.</exception>
    public void Read(bool found, Revision revision, KahunaValue? value, TimeSpan? remaining)
    {
        if (WasRead)
        {
            RequireSame(found, revision);
        }

        (WasRead, _found, _revision, _remaining, _knowsRemaining) = (true, found, revision, remaining, true);
        _value = value ?? _value;
    }

    /// <summary>A scan has found the key; without the value when that was not asked for.</summary>
    /// <exception cref="KahunaException">TransactionConflict: it is not as it was read before.</exception>
    public void Scanned(Revision revision, KahunaValue? value)
    {
        if (WasRead)
        {
            RequireSame(found: true, revision);
        }

        (WasRead, _found, _revision) = (true, true, revision);
        _value = value ?? _value;
    }

    /// <exception cref="KahunaException">TransactionConflict: the key is not as it was read.</exception>
    public void RequireSame(bool found, Revision revision)
    {
        if (found != _found || (found && revision != _revision))
        {
            throw OperationErrors.Conflict(name);
        }
    }

    public void Set(KahunaValue value, TimeSpan? ttl) => (_pending, _written, _ttl) = (Pending.Set, value, ttl);

    public void Delete() => _pending = Pending.Delete;

    public void Extend(TimeSpan ttl)
    {
        switch (_pending)
        {
            case Pending.Set:
                _ttl = ttl == TimeSpan.Zero ? null : ttl;
                break;
            case Pending.Increment:
                (_pending, _ttl) = (Pending.Set, ttl == TimeSpan.Zero ? null : ttl);
                break;
            case Pending.Delete:
                break;
            default:
                (_pending, _ttl) = (Pending.Extend, ttl);
                break;
        }
    }

    /// <summary>Adds to what the transaction sees. Returns the sum.</summary>
    /// <exception cref="KahunaException">It is no integer, or the sum leaves the range.</exception>
    public long Increment(in GetResult seen, long amount)
    {
        long number = 0;
        if (seen.Found && (seen.Value.IsNull
            || !long.TryParse(
                seen.Value.Memory.Span, NumberStyles.AllowLeadingSign, CultureInfo.InvariantCulture, out number)))
        {
            throw OperationErrors.NoInteger(name);
        }

        long sum;
        try
        {
            sum = checked(number + amount);
            _amount = _pending is Pending.None or Pending.Increment ? checked(_amount + amount) : _amount;
        }
        catch (OverflowException)
        {
            throw OperationErrors.NoRoomForSum(name);
        }

        _written = sum.ToString(CultureInfo.InvariantCulture);
        if (_pending is Pending.None or Pending.Increment)
        {
            _pending = Pending.Increment;
        }
        else
        {
            // An extension of a key that does not exist has no effect.
            bool keepsTtl = _pending == Pending.Set || (_pending == Pending.Extend && seen.Found);
            _ttl = keepsTtl && _ttl != TimeSpan.Zero ? _ttl : null;
            _pending = Pending.Set;
        }

        return sum;
    }

    /// <summary>What the commit depends on.</summary>
    public KeyCondition ToCondition() =>
        (_found ? KeyCondition.HasRevision(name, _revision) : KeyCondition.Absent(name)).WithDurability(durability);

    /// <summary>What the commit writes; null for nothing.</summary>
    public KeyOperation? ToOperation() => OperationOf()?.WithDurability(durability);

    private KeyOperation? OperationOf() => _pending switch
    {
        Pending.Set => KeyOperation.Set(name, _written, _ttl),
        Pending.Delete => KeyOperation.Delete(name),
        Pending.Extend => KeyOperation.Extend(name, _ttl!.Value),
        Pending.Increment => KeyOperation.Increment(name, _amount),
        _ => null,
    };

    /// <summary>What the commit does with the key. Not stored.</summary>
    private enum Pending
    {
        /// <summary>Nothing.</summary>
        None,

        /// <summary>It writes a value.</summary>
        Set,

        /// <summary>It removes the key.</summary>
        Delete,

        /// <summary>It sets the time to live.</summary>
        Extend,

        /// <summary>It adds an amount.</summary>
        Increment,
    }
}
