namespace Kahuna.Server.Primitives;

/// <summary>The voters of every group of a cluster, by ascending id. Compared by value. Immutable.</summary>
internal sealed class VoterSet : IEquatable<VoterSet>
{
    private readonly NodeId[] _ids;

    public VoterSet(IEnumerable<NodeId> ids) => _ids = [.. ids.Distinct().Order()];

    public IReadOnlyList<NodeId> Ids => _ids;

    public bool Equals(VoterSet? other) => other is not null && _ids.AsSpan().SequenceEqual(other._ids);

    public override bool Equals(object? obj) => Equals(obj as VoterSet);

    public override int GetHashCode() => _ids.Aggregate(_ids.Length, static (hash, id) => (hash * 31) + id.Value);

    /// <summary>The ids: "1, 2, 3".</summary>
    public override string ToString() => string.Join(", ", _ids);
}
