using System.Runtime.InteropServices;
using Kahuna.Wire.Routing;

namespace Kahuna.Server.Api.Watches;

/// <summary>
/// Finds the filters that a key matches: one look-up for the key, one for its bucket, and one for each length of prefix
/// in use that the key is long enough for. Not thread-safe.
/// </summary>
/// <typeparam name="T">What belongs to a filter.</typeparam>
internal sealed class FilterIndex<T>
    where T : class
{
    private const int QuickLengths = 8;

    private readonly Dictionary<ulong, Filter<T>> _keys = [];
    private readonly Dictionary<ulong, Filter<T>> _buckets = [];
    private readonly Dictionary<ulong, Filter<T>> _prefixes = [];

    /// <summary>The lengths of prefixes in use, ascending, each with its number of prefixes.</summary>
    private readonly List<(int Length, int Count)> _lengths = [];

    /// <summary>Number of filters.</summary>
    public int Count { get; private set; }

    /// <summary>A key is looked up a few times only.</summary>
    public bool IsQuick => _lengths.Count <= QuickLengths;

    /// <summary>The filter with a name; null: there is none.</summary>
    public Filter<T>? Find(WatchScope scope, ReadOnlySpan<byte> name) => Find(Of(scope), NameHash.Of(name), name);

    /// <summary>Adds a filter that is not there.</summary>
    public Filter<T> Add(WatchScope scope, byte[] name, T value)
    {
        Filter<T> filter = new(scope, name, NameHash.Of(name), value);
        ref Filter<T>? first = ref CollectionsMarshal.GetValueRefOrAddDefault(Of(scope), filter.Hash, out _);
        filter.Next = first;
        first = filter;
        Count++;
        if (scope == WatchScope.Prefix)
        {
            CountLength(name.Length, 1);
        }

        return filter;
    }

    /// <summary>Removes a filter that is there.</summary>
    public void Remove(Filter<T> filter)
    {
        Dictionary<ulong, Filter<T>> filters = Of(filter.Scope);
        Filter<T>? before = null;
        for (Filter<T> each = filters[filter.Hash]; each != filter; each = each.Next!)
        {
            before = each;
        }

        if (before is not null)
        {
            before.Next = filter.Next;
        }
        else if (filter.Next is not null)
        {
            filters[filter.Hash] = filter.Next;
        }
        else
        {
            filters.Remove(filter.Hash);
        }

        Count--;
        if (filter.Scope == WatchScope.Prefix)
        {
            CountLength(filter.Name.Length, -1);
        }
    }

    /// <summary>Appends the filters that a key matches.</summary>
    public void Match(ReadOnlySpan<byte> key, List<Filter<T>> matches)
    {
        int bucket = _buckets.Count > 0 ? KeyRouting.Bucket(key).Length : -1;
        int place = 0;
        ulong hash = NameHash.Empty;
        for (int length = 0; ; length++)
        {
            if (place < _lengths.Count && _lengths[place].Length == length)
            {
                place++;
                AddTo(matches, _prefixes, hash, key[..length]);
            }

            if (length == bucket)
            {
                AddTo(matches, _buckets, hash, key[..length]);
            }

            if (length == key.Length)
            {
                break;
            }

            if (_keys.Count == 0 && place == _lengths.Count && length >= bucket)
            {
                return;
            }

            hash = NameHash.Next(hash, key[length]);
        }

        AddTo(matches, _keys, hash, key);
    }

    private static void AddTo(
        List<Filter<T>> matches, Dictionary<ulong, Filter<T>> filters, ulong hash, ReadOnlySpan<byte> name)
    {
        if (Find(filters, hash, name) is { } filter)
        {
            matches.Add(filter);
        }
    }

    private static Filter<T>? Find(Dictionary<ulong, Filter<T>> filters, ulong hash, ReadOnlySpan<byte> name)
    {
        filters.TryGetValue(hash, out Filter<T>? filter);
        while (filter is not null && !name.SequenceEqual(filter.Name))
        {
            filter = filter.Next;
        }

        return filter;
    }

    private Dictionary<ulong, Filter<T>> Of(WatchScope scope) => scope switch
    {
        WatchScope.Key => _keys,
        WatchScope.Bucket => _buckets,
        _ => _prefixes,
    };

    private void CountLength(int length, int change)
    {
        int place = 0;
        while (place < _lengths.Count && _lengths[place].Length < length)
        {
            place++;
        }

        if (place == _lengths.Count || _lengths[place].Length != length)
        {
            _lengths.Insert(place, (length, 0));
        }

        int count = _lengths[place].Count + change;
        if (count == 0)
        {
            _lengths.RemoveAt(place);
        }
        else
        {
            _lengths[place] = (length, count);
        }
    }
}

/// <summary>Which keys are watched: one key, a bucket or a prefix. Owned by its <see cref="FilterIndex{T}"/>.</summary>
/// <param name="scope">What the name is.</param>
/// <param name="name">The name.</param>
/// <param name="hash">Its hash.</param>
/// <param name="value">What belongs to it.</param>
internal sealed class Filter<T>(WatchScope scope, byte[] name, ulong hash, T value)
    where T : class
{
    public WatchScope Scope { get; } = scope;

    public byte[] Name { get; } = name;

    public ulong Hash { get; } = hash;

    /// <summary>What belongs to the filter.</summary>
    public T Value { get; set; } = value;

    /// <summary>The next filter with the same hash.</summary>
    public Filter<T>? Next { get; set; }
}
