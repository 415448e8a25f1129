using Kahuna.Server.Primitives;

namespace Kahuna.Server.Hosting.Membership;

/// <summary>What this node knows of another one: its data directory, and those that it had before. Immutable.</summary>
/// <param name="Id">The other node.</param>
/// <param name="DirectoryId">The directory that may speak for it.</param>
/// <param name="Former">Directories that may not any more, the oldest first.</param>
internal sealed record KnownMember(NodeId Id, ulong DirectoryId, IReadOnlyList<ulong> Former)
{
    /// <summary>More than anybody rebuilds a node by hand; a script that rebuilds at each start must not fill the disk.</summary>
    private const int FormerMax = 1000;

    /// <summary>The member after a rebuild.</summary>
    public KnownMember ReplacedBy(ulong directoryId) => this with { DirectoryId = directoryId, Former = [.. Former.TakeLast(FormerMax - 1), DirectoryId] };
}
