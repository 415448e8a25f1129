using Kahuna.Server.Access;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Hosting.Administration;

/// <summary>
/// The request to recover an administrator that a node found at its start, if any. Owned by the node.
/// </summary>
internal sealed class NodeRecovery
{
    private readonly RecoveryRequest _request;
    private readonly RecoveryVoter _voter;
    private readonly VoterSet _voters;
    private readonly string _path;

    private NodeRecovery(RecoveryRequest request, NodeOptions options, ulong directoryId)
    {
        _request = request;
        _voter = new RecoveryVoter(options.NodeId, directoryId);
        _voters = options.Voters;
        _path = Path.Combine(options.DataDirectory, RecoveryRequest.FileName);
    }

    /// <summary>Looks into the data directory; null: nobody asks for anything.</summary>
    /// <exception cref="InvalidDataException">The file is unusable; the message is one line.</exception>
    public static NodeRecovery? Find(NodeOptions options) =>
        RecoveryRequest.Find(options.DataDirectory, options.ClusterId) is { } request
        && DataDirectoryIdentity.TryRead(options.DataDirectory) is { } identity
            ? new NodeRecovery(request, options, identity.DirectoryId)
            : null;

    /// <summary>Votes, and carries the request out when it can; ends with the token.</summary>
    public Task RunAsync(IAccessLedger ledger, IAuditLog audit, ILogger log, CancellationToken stop) =>
        new AdministratorRecovery(
            _request,
            _voter,
            _voters,
            ledger,
            new RecoveryPorts(audit, log, TimeProvider.System, Remove)).RunAsync(stop);

    private void Remove()
    {
        try
        {
            File.Delete(_path);
        }
        catch (Exception error) when (error is IOException or UnauthorizedAccessException)
        {
            // It has no effect now: it was carried out, or is too old. The next start removes it.
        }
    }
}
