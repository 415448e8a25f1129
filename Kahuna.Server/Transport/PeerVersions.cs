namespace Kahuna.Server.Transport;

/// <summary>A range of versions of the protocol between nodes. A value.</summary>
/// <param name="Min">The lowest version.</param>
/// <param name="Max">The highest version.</param>
internal readonly record struct PeerVersions(ushort Min, ushort Max)
{
    /// <summary>Both sides speak a common version.</summary>
    public bool Overlaps(PeerVersions other) => Math.Min(Max, other.Max) >= Math.Max(Min, other.Min);

    public override string ToString() => Min == Max ? $"version {Min}" : $"versions {Min} to {Max}";
}
