using Kahuna.Server.Access;

namespace Kahuna.Tests.Access;

/// <summary>
/// A small world of names, which the model of rights goes through one by one. Grants and questions use names of at most
/// three of '/', 'a' and 'b'. The world has one more character per name and the characters behind these three, so that
/// whatever a grant leaves out has a name in it. Immutable.
/// </summary>
internal sealed class NameUniverse
{
    private const string Asked = "/ab";
    private const string All = "\0/0abc";

    private readonly Dictionary<string, int> _places = new(StringComparer.Ordinal);
    private readonly Dictionary<string, int[]> _sets = new(StringComparer.Ordinal);

    public NameUniverse()
    {
        List<string> names = [.. Words(All, 4)];
        names.Sort(StringComparer.Ordinal);
        Names = names;
        for (int i = 0; i < names.Count; i++)
        {
            _places.Add(names[i], i);
        }

        Short = [.. Words(Asked, 3).Skip(1)];
    }

    /// <summary>All names, in their order, and the empty one.</summary>
    public IReadOnlyList<string> Names { get; }

    /// <summary>The names of grants and questions.</summary>
    public IReadOnlyList<string> Short { get; }

    /// <summary>The grant covers the name.</summary>
    public static bool Covers(Grant grant, string grantName, string name) => grant.Scope switch
    {
        GrantScope.Prefix => name.StartsWith(grantName, StringComparison.Ordinal),
        GrantScope.Key => name == grantName,
        _ => IsInBucket(grantName, name),
    };

    /// <summary>The place of a name.</summary>
    public int[] Name(string name) => [_places[name]];

    /// <summary>The places of the names with a prefix.</summary>
    public int[] Prefix(string prefix) => Set($"p{prefix}", name => name.StartsWith(prefix, StringComparison.Ordinal));

    /// <summary>The places of the names of a bucket, and of the buckets inside it.</summary>
    public int[] Bucket(string bucket) => Set($"b{bucket}", name => IsInBucket(bucket, name));

    /// <summary>The places of the names of a range; an empty one has its start.</summary>
    public int[] Range(string start, string? end) => end is not null && string.CompareOrdinal(end, start) <= 0
        ? Name(start)
        : Set($"r{start}-{end ?? "*"}", name => string.CompareOrdinal(name, start) >= 0
            && (end is null || string.CompareOrdinal(name, end) < 0));

    private static bool IsInBucket(string bucket, string name) =>
        name.StartsWith(bucket + "/", StringComparison.Ordinal)
            || (bucket.Length > 0 && !bucket.Contains('/', StringComparison.Ordinal) && name == bucket);

    private static IEnumerable<string> Words(string characters, int length)
    {
        IEnumerable<string> words = [""];
        IEnumerable<string> last = words;
        for (int i = 0; i < length; i++)
        {
            last = [.. last.SelectMany(_ => characters, static (word, character) => word + character)];
            words = words.Concat(last);
        }

        return words;
    }

    private int[] Set(string key, Func<string, bool> isIn)
    {
        if (!_sets.TryGetValue(key, out int[]? places))
        {
            places = [.. Enumerable.Range(0, Names.Count).Where(i => isIn(Names[i]))];
            _sets.Add(key, places);
        }

        return places;
    }
}
