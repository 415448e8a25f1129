using Kahuna.Wire.Routing;

namespace Kahuna.Client.Watches;

/// <summary>Which changes a watch is about. A value; the name is not changed.</summary>
/// <param name="durability">The durability of the keys.</param>
/// <param name="scope">What the name stands for.</param>
/// <param name="withValues">The changes carry the values.</param>
/// <param name="name">The name in UTF-8.</param>
internal readonly struct WatchFilter(Durability durability, WatchScope scope, bool withValues, byte[] name)
    : IEquatable<WatchFilter>
{
    public Durability Durability => durability;

    public WatchScope Scope => scope;

    public bool WithValues => withValues;

    public byte[] Name => name;

    /// <summary>The key belongs to it.</summary>
    public bool Matches(ReadOnlySpan<byte> key) => scope switch
    {
        WatchScope.Key => key.SequenceEqual(name),
        WatchScope.Bucket => KeyRouting.Bucket(key).SequenceEqual(name),
        _ => key.StartsWith(name),
    };

    /// <inheritdoc/>
    public bool Equals(WatchFilter other) =>
        durability == other.Durability
            && scope == other.Scope
            && withValues == other.WithValues
            && name.AsSpan().SequenceEqual(other.Name);

    /// <inheritdoc/>
    public override bool Equals(object? obj) => obj is WatchFilter other && Equals(other);

    /// <inheritdoc/>
    public override int GetHashCode()
    {
        HashCode hash = default;
        hash.Add(((int)durability << 8) | ((int)scope << 1) | (withValues ? 1 : 0));
        hash.AddBytes(name);
        return hash.ToHashCode();
    }
}
