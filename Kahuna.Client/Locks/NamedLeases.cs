using System.Runtime.InteropServices;

namespace Kahuna.Client.Locks;

/// <summary>
/// The leases of one client whose owners were named: handles of the same owner and lock share one grant, which ends for
/// all of them when one gives it back or hears that it is gone; also for a call of that owner that was answered, or will
/// be, with the same grant. Part of a <see cref="KahunaClient"/>; any thread. Holds no lock while leases are lost.
/// </summary>
internal sealed class NamedLeases
{
    private readonly Lock _lock = new();
    private readonly Dictionary<(string Resource, Durability Durability, string Owner), Grants> _grants = [];

    /// <summary>A call of an owner asks for a lock, until it is disposed.</summary>
    public Ask Enter((string Resource, Durability Durability, string Owner) key)
    {
        Ask ask = new(this, key);
        lock (_lock)
        {
            Of(key).Asks.Add(ask);
        }

        return ask;
    }

    /// <summary>
    /// Takes a lease on, if its owner is named. False: its grant is over, or being given back, since it was asked for.
    /// </summary>
    public bool TryAdd(HeldLease lease)
    {
        if (!lease.Claim.IsNamed)
        {
            return true;
        }

        lock (_lock)
        {
            if (lease.Claim.Ask is { } ask && lease.Token <= ask.OverToken)
            {
                return false;
            }

            Of(lease.Claim.Key).Leases.Add(lease);
            return true;
        }
    }

    public void Remove(HeldLease lease)
    {
        if (!lease.Claim.IsNamed)
        {
            return;
        }

        lock (_lock)
        {
            if (_grants.TryGetValue(lease.Claim.Key, out Grants? grants) && grants.Leases.Remove(lease))
            {
                Forget(lease.Claim.Key, grants);
            }
        }
    }

    /// <summary>Tells every lease of a grant that it is over, and every call that may be about to get it.</summary>
    public void Lose(in LockClaim claim, long token)
    {
        if (claim.IsNamed)
        {
            Lose(claim.Key, token, isLeaving: false);
        }
    }

    /// <summary>
    /// As <see cref="Lose(in LockClaim, long)"/>, for a grant that is about to be given back. The caller disposes the
    /// result when the request has ended.
    /// </summary>
    public Parting GiveBack(in LockClaim claim, long token) => claim.IsNamed ? GiveBack(claim.Key, token) : default;

    /// <inheritdoc cref="GiveBack(in LockClaim, long)"/>
    public Parting GiveBack((string Resource, Durability Durability, string Owner) key, long token)
    {
        Lose(key, token, isLeaving: true);
        return new Parting(this, key, token);
    }

    private void Lose((string Resource, Durability Durability, string Owner) key, long token, bool isLeaving)
    {
        HeldLease[] lost;
        lock (_lock)
        {
            if (!isLeaving && !_grants.ContainsKey(key))
            {
                return;
            }

            Grants grants = Of(key);
            if (isLeaving)
            {
                grants.Leaving.Add(token);
            }

            foreach (Ask ask in grants.Asks)
            {
                ask.OverToken = Math.Max(ask.OverToken, token);
            }

            lost = [.. grants.Leases.Where(lease => lease.Token == token)];
        }

        foreach (HeldLease lease in lost)
        {
            lease.Lose();
        }
    }

    private Grants Of((string Resource, Durability Durability, string Owner) key) =>
        CollectionsMarshal.GetValueRefOrAddDefault(_grants, key, out _) ??= new Grants();

    private void Forget((string Resource, Durability Durability, string Owner) key, Grants grants)
    {
        if (grants is { Leases.Count: 0, Asks.Count: 0, Leaving.Count: 0 })
        {
            _grants.Remove(key);
        }
    }

    /// <summary>A call that asks for a lock. Its answer may be older than what others of its owner know.</summary>
    internal sealed class Ask(NamedLeases all, (string Resource, Durability Durability, string Owner) key) : IDisposable
    {
        /// <summary>The newest grant that is over since the call has asked; 0: none. Guarded by its owner.</summary>
        public long OverToken { get; set; }

        /// <summary>The call asks, or asks again: what was over before that is not what it gets.</summary>
        public void Begin()
        {
            lock (all._lock)
            {
                // What is only about to be given back may still be.
                OverToken = all._grants[key].Leaving.DefaultIfEmpty().Max();
            }
        }

        /// <summary>A grant is over, or being given back, since the call has asked.</summary>
        public bool IsOver(long token)
        {
            lock (all._lock)
            {
                return token <= OverToken;
            }
        }

        public void Dispose()
        {
            lock (all._lock)
            {
                if (all._grants.TryGetValue(key, out Grants? grants) && grants.Asks.Remove(this))
                {
                    all.Forget(key, grants);
                }
            }
        }
    }

    /// <summary>
    /// A grant that is being given back, until the cluster has answered or the attempt has failed. A value; the default
    /// one is of an owner without a name.
    /// </summary>
    internal readonly struct Parting(NamedLeases all, (string Resource, Durability Durability, string Owner) key, long token) : IDisposable
    {
        public void Dispose()
        {
            if (all is null)
            {
                return;
            }

            lock (all._lock)
            {
                if (all._grants.TryGetValue(key, out Grants? grants) && grants.Leaving.Remove(token))
                {
                    all.Forget(key, grants);
                }
            }
        }
    }

    /// <summary>What there is of one owner and lock. Guarded by the lock of its owner.</summary>
    private sealed class Grants
    {
        public List<HeldLease> Leases { get; } = [];

        public List<Ask> Asks { get; } = [];

        /// <summary>Tokens that are being given back.</summary>
        public List<long> Leaving { get; } = [];
    }
}
