namespace Kahuna.Tests.Traces;

/// <summary>A log entry, by its term and a hash of its bytes; the hash is 0 when no trace shows the bytes.</summary>
internal readonly record struct TracedEntry(ulong Term, ulong Hash)
{
    /// <summary>They can be the same.</summary>
    public bool Agrees(TracedEntry other) => Term == other.Term && (Hash == other.Hash || Hash == 0 || other.Hash == 0);

    public override string ToString() => $"of term {Term} with hash {Hash:x16}";
}
