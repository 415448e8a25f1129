using System.Numerics;

namespace Kahuna.Server.Access;

/// <summary>
/// What somebody may do: grants, ready to be asked on a hot path. Questions allocate nothing. What no grant covers is
/// not allowed. Immutable; any thread.
/// </summary>
internal sealed class Rights
{
    private const int Bits = 8;
    private const Permissions Known = Permissions.Data | Permissions.Admin;

    /// <summary>The names of each permission: those of persistent names, then those of ephemeral ones.</summary>
    private readonly NameIntervals[] _names = new NameIntervals[2 * Bits];

    /// <summary>The permissions on all names, by durability.</summary>
    private readonly Permissions[] _everywhere = new Permissions[2];

    /// <summary>The permissions on one name at least.</summary>
    private readonly Permissions _somewhere;

    private Rights(IReadOnlyCollection<Grant> grants)
    {
        for (int i = 0; i < _names.Length; i++)
        {
            Permissions permission = (Permissions)(1 << (i % Bits));
            GrantLevels level = i < Bits ? GrantLevels.Persistent : GrantLevels.Ephemeral;
            NameIntervals names = NameIntervals.Of(grants
                .Where(grant => (grant.Permissions & permission) != 0 && (grant.Levels & level) != 0)
                .SelectMany(static grant => grant.Ranges()));

            // One object for the same names: a question about several permissions looks them up once.
            _names[i] = Array.Find(_names, other => other is not null && other.IsSame(names)) ?? names;
            _everywhere[i / Bits] |= names.IsEverything ? permission : 0;
            _somewhere |= names.IsEmpty ? 0 : permission;
        }

        IsAdmin = grants.Any(static grant => (grant.Permissions & Permissions.Admin) != 0 && grant.CoversAll);
    }

    /// <summary>Nothing is allowed.</summary>
    public static Rights None { get; } = new([]);

    /// <summary>Everything is allowed.</summary>
    public static Rights All { get; } = new([Grant.Everything]);

    /// <summary>Users, roles, tokens and the state of nodes are open.</summary>
    public bool IsAdmin { get; }

    /// <summary>What the grants allow together.</summary>
    public static Rights Of(IEnumerable<Grant> grants)
    {
        List<Grant> all = [.. grants];
        return all.Count == 0 ? None : new Rights(all);
    }

    /// <summary>All of the permissions are allowed on this name.</summary>
    public bool Covers(Permissions wanted, Durability durability, ReadOnlySpan<byte> name) =>
        FirstMissing(wanted, durability, AskedNames.Name(name)) is null;

    /// <summary>
    /// All of the permissions are allowed on all names from the start up to, not including, the end. An empty range
    /// needs them on its start.
    /// </summary>
    /// <param name="wanted">The permissions.</param>
    /// <param name="durability">Of the names.</param>
    /// <param name="start">The first name; empty: from the first of all.</param>
    /// <param name="end">The first name behind the range.</param>
    /// <param name="hasEnd">False: up to the last of all.</param>
    public bool CoversRange(
        Permissions wanted, Durability durability, ReadOnlySpan<byte> start, ReadOnlySpan<byte> end, bool hasEnd) =>
        FirstMissing(wanted, durability, AskedNames.Range(start, end, hasEnd)) is null;

    /// <summary>All of the permissions are allowed on all names that begin with the prefix.</summary>
    public bool CoversPrefix(Permissions wanted, Durability durability, ReadOnlySpan<byte> prefix) =>
        FirstMissing(wanted, durability, AskedNames.Prefix(prefix)) is null;

    /// <summary>
    /// All of the permissions are allowed on all names of the bucket (<c>KeyRouting.Bucket</c>) and of the buckets
    /// inside it; on itself too, if it is a name without a '/'.
    /// </summary>
    public bool CoversBucket(Permissions wanted, Durability durability, ReadOnlySpan<byte> bucket)
    {
        const int OnStack = 1024;
        Span<byte> prefix = bucket.Length < OnStack ? stackalloc byte[OnStack] : new byte[bucket.Length + 1];
        bucket.CopyTo(prefix);
        prefix[bucket.Length] = (byte)'/';
        return CoversPrefix(wanted, durability, prefix[..(bucket.Length + 1)])
            && (bucket.IsEmpty || bucket.Contains((byte)'/') || Covers(wanted, durability, bucket));
    }

    /// <summary>Each of the permissions is allowed on one name at least, of whichever durability.</summary>
    public bool CoversSome(Permissions wanted) => wanted != Permissions.None && (wanted & ~_somewhere) == 0;

    /// <summary>
    /// The first of the permissions that is not allowed on all of the names; null: they all are. Without permissions
    /// that are known, and for names of no durability, nothing is allowed.
    /// </summary>
    public Permissions? FirstMissing(Permissions wanted, Durability durability, scoped in AskedNames asked)
    {
        if (durability is not (Durability.Persistent or Durability.Ephemeral)
            || wanted == Permissions.None
            || (wanted & ~Known) != 0)
        {
            return wanted;
        }

        int row = durability == Durability.Persistent ? 0 : 1;
        NameIntervals? last = null;
        for (uint left = (uint)(wanted & ~_everywhere[row]); left != 0; left &= left - 1)
        {
            int bit = BitOperations.TrailingZeroCount(left);
            NameIntervals names = _names[(row * Bits) + bit];
            if (names != last && !names.Contains(in asked))
            {
                return (Permissions)(1 << bit);
            }

            last = names;
        }

        return null;
    }
}
