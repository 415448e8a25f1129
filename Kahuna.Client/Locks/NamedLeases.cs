namespace Kahuna.Client.Locks;

/// <summary>
/// The leases of one client whose owners were named: handles of the same owner and lock share one grant, which ends for
/// all of them when one gives it back or hears that it is gone. Part of a <see cref="KahunaClient"/>; any thread. Holds
/// no lock while leases are lost.
/// </summary>
internal sealed class NamedLeases
{
    private readonly Lock _lock = new();
    private readonly Dictionary<(string Resource, Durability Durability, string Owner), List<HeldLease>> _leases = [];

    /// <summary>Takes a lease on, if its owner is named.</summary>
    public void Add(HeldLease lease)
    {
        if (!lease.Claim.IsNamed)
        {
            return;
        }

        lock (_lock)
        {
            if (!_leases.TryGetValue(lease.Claim.Key, out List<HeldLease>? leases))
            {
                _leases.Add(lease.Claim.Key, leases = []);
            }

            leases.Add(lease);
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
            if (_leases.TryGetValue(lease.Claim.Key, out List<HeldLease>? leases) && leases.Remove(lease) && leases.Count == 0)
            {
                _leases.Remove(lease.Claim.Key);
            }
        }
    }

    /// <summary>A grant is over, or about to be given back: whoever relies on it is told.</summary>
    public void Lose(in LockClaim claim, long token)
    {
        if (claim.IsNamed)
        {
            Lose(claim.Key, token);
        }
    }

    /// <inheritdoc cref="Lose(in LockClaim, long)"/>
    public void Lose((string Resource, Durability Durability, string Owner) key, long token)
    {
        HeldLease[] lost;
        lock (_lock)
        {
            if (!_leases.TryGetValue(key, out List<HeldLease>? leases))
            {
                return;
            }

            lost = [.. leases.Where(lease => lease.Token == token)];
        }

        foreach (HeldLease lease in lost)
        {
            lease.Lose();
        }
    }
}
