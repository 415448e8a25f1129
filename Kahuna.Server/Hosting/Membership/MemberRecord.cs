using Kahuna.Server.Primitives;

namespace Kahuna.Server.Hosting.Membership;

/// <summary>Another node's data directory, as known here, and its former ones. Immutable.</summary>
/// <param name="Id">The other node.</param>
/// <param name="DirectoryId">The directory that may speak for it.</param>
/// <param name="Former">Replaced directories, oldest first.</param>
internal sealed record MemberRecord(NodeId Id, ulong DirectoryId, IReadOnlyList<ulong> Former)
{
    /// <summary>
    /// More than anybody rebuilds a node by hand; a script that rebuilds at each start must not fill the disk.
    /// </summary>
    private const int FormerMax = 1000;

    /// <summary>The record after a rebuild.</summary>
    public MemberRecord ReplacedBy(ulong directoryId) =>
        this with { DirectoryId = directoryId, Former = [.. Former.TakeLast(FormerMax - 1), DirectoryId] };
}
