using System.Runtime.InteropServices;

namespace Kahuna.Client.Locks;

/// <summary>
/// The leases of one client that have named owners. All handles of one owner and lock share a grant, which ends for all
/// when one releases it or learns that it is lost. It ends also for pending calls of that owner that get the same
/// grant. Part of a <see cref="KahunaClient"/>; any thread. Holds no lock while leases are lost.
/// </summary>
internal sealed class NamedLeases
{
    private readonly Lock _lock = new();
    private readonly Dictionary<(string Resource, Durability Durability, string Owner), Grants> _grants = [];

    /// <summary>Registers a call that acquires a lock, until the result is disposed.</summary>
    public PendingAcquire BeginAcquire((string Resource, Durability Durability, string Owner) key)
    {
        PendingAcquire acquire = new(this, key);
        lock (_lock)
        {
            Of(key).Acquires.Add(acquire);
        }

        return acquire;
    }

    /// <summary>
    /// Adds a lease if its owner is named. False when its grant has ended or is being released since it was asked for.
    /// </summary>
    public bool TryAdd(HeldLease lease)
    {
        if (!lease.Claim.IsNamed)
        {
            return true;
        }

        lock (_lock)
        {
            if (lease.Claim.Pending is { } acquire && lease.Token <= acquire.EndedToken)
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

    /// <summary>Ends a grant for all its leases and for pending calls that may get it.</summary>
    public void Lose(in OwnerClaim claim, FencingToken token)
    {
        if (claim.IsNamed)
        {
            Lose(claim.Key, token, isReleasing: false);
        }
    }

    /// <summary>
    /// As <see cref="Lose(in OwnerClaim, FencingToken)"/>, for a grant that is about to be released. The caller
    /// disposes the result when the request has ended.
    /// </summary>
    public PendingRelease BeginRelease(in OwnerClaim claim, FencingToken token) =>
        claim.IsNamed ? BeginRelease(claim.Key, token) : default;

    /// <inheritdoc cref="BeginRelease(in OwnerClaim, FencingToken)"/>
    public PendingRelease BeginRelease((string Resource, Durability Durability, string Owner) key, FencingToken token)
    {
        Lose(key, token, isReleasing: true);
        return new PendingRelease(this, key, token);
    }

    private void Lose((string Resource, Durability Durability, string Owner) key, FencingToken token, bool isReleasing)
    {
        HeldLease[] lost;
        lock (_lock)
        {
            if (!isReleasing && !_grants.ContainsKey(key))
            {
                return;
            }

            Grants grants = Of(key);
            if (isReleasing)
            {
                grants.Releasing.Add(token);
            }

            foreach (PendingAcquire acquire in grants.Acquires)
            {
                acquire.EndedToken = acquire.EndedToken >= token ? acquire.EndedToken : token;
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
        if (grants is { Leases.Count: 0, Acquires.Count: 0, Releasing.Count: 0 })
        {
            _grants.Remove(key);
        }
    }

    /// <summary>
    /// A call that acquires a lock. Its answer may be older than the news that other calls of its owner have.
    /// </summary>
    internal sealed class PendingAcquire(NamedLeases all, (string Resource, Durability Durability, string Owner) key)
        : IDisposable
    {
        /// <summary>
        /// The newest grant that has ended since the call asked; 0 for none. Guarded by the lock of its owner.
        /// </summary>
        public FencingToken EndedToken { get; set; }

        /// <summary>The call asks, or asks again: it cannot get a grant that ended before.</summary>
        public void Begin()
        {
            lock (all._lock)
            {
                // A release that is still pending may be applied later.
                EndedToken = all._grants[key].Releasing.DefaultIfEmpty().Max();
            }
        }

        /// <summary>True when a grant has ended or is being released since the call asked.</summary>
        public bool IsEnded(FencingToken token)
        {
            lock (all._lock)
            {
                return token <= EndedToken;
            }
        }

        public void Dispose()
        {
            lock (all._lock)
            {
                if (all._grants.TryGetValue(key, out Grants? grants) && grants.Acquires.Remove(this))
                {
                    all.Forget(key, grants);
                }
            }
        }
    }

    /// <summary>
    /// A grant that is being released, until the cluster has answered or the attempt has failed. A value; the default
    /// is that of an unnamed owner.
    /// </summary>
    internal readonly struct PendingRelease(
        NamedLeases all, (string Resource, Durability Durability, string Owner) key, FencingToken token)
        : IDisposable
    {
        public void Dispose()
        {
            if (all is null)
            {
                return;
            }

            lock (all._lock)
            {
                if (all._grants.TryGetValue(key, out Grants? grants) && grants.Releasing.Remove(token))
                {
                    all.Forget(key, grants);
                }
            }
        }
    }

    /// <summary>The leases and pending calls of one owner and lock. Guarded by the lock of its owner.</summary>
    private sealed class Grants
    {
        public List<HeldLease> Leases { get; } = [];

        public List<PendingAcquire> Acquires { get; } = [];

        /// <summary>Tokens that are being released.</summary>
        public List<FencingToken> Releasing { get; } = [];
    }
}
