using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Hosting.Tracing;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage;
using Kahuna.Server.Storage.Checkpoints;
using Kahuna.Server.Storage.Disk;

namespace Kahuna.Server.Hosting;

/// <summary>
/// A node's data on disk: the log, the checkpoints, and the trace if there is one. Owned by the node.
/// </summary>
internal sealed class NodeStorage : IAsyncDisposable
{
    /// <summary>The log is cut by whole segments, so each must be small relative to the kept log.</summary>
    private const int SegmentsPerKeptLog = 8;

    private NodeStorage(ThreadedLog log, IStateStore states, StateStoreChoice kind, NodeTrace? trace)
    {
        Log = log;
        States = states;
        Kind = kind;
        Trace = trace;
    }

    public ThreadedLog Log { get; }

    public IStateStore States { get; }

    public StateStoreChoice Kind { get; }

    public NodeTrace? Trace { get; }

    /// <summary>Opens them. If one cannot be opened, the others are closed.</summary>
    /// <exception cref="IOException">Something is damaged, in use or refused by the disk; the message is one
    /// line.</exception>
    public static async Task<NodeStorage> OpenAsync(
        NodeOptions options, DataDirectoryIdentity identity, IFatalErrors fatal, Action<ReportLine> report)
    {
        StateStoreChoice kind = identity.StateStore!.Value;
        SegmentedLogOptions sizes = new();
        ThreadedLog log = ThreadedLog.Open(
            options.DataDirectory,
            sizes with
            {
                LogLimitBytes = options.LogLimitBytes,
                KeepBytes = options.LogKeepBytes,
                SegmentBytes = Math.Clamp(
                    options.LogKeepBytes / SegmentsPerKeptLog, sizes.FirstSegmentBytes, sizes.SegmentBytes),
                LogId = identity.LogId,
                LogMade = identity.LogMade,
                WriteMode = options.LogWrites == LogWrites.Direct ? DiskFileMode.Appended : DiskFileMode.Existing,
                Time = TimeProvider.System,
            },
            fatal,
            report);
        NodeTrace? trace = null;
        try
        {
            if (!identity.LogMade)
            {
                // Before the first vote: a later start without the log has lost what this one promised.
                DataDirectoryIdentity.WithLogMade(options.DataDirectory);
            }

            trace = options.TracePath is { } path ? NodeTrace.Open(path, options.NodeId) : null;
            string directory = Path.Combine(options.DataDirectory, DataDirectoryIdentity.StateDirectoryName);
            IStateStore states = kind == StateStoreChoice.RocksDb
                ? new RocksStateStore(directory)
                : new FileStateStore(LocalDisk.Shared, directory);
            return new NodeStorage(log, states, kind, trace);
        }
        catch
        {
            trace?.Dispose();
            await log.DisposeAsync().ConfigureAwait(false);
            throw;
        }
    }

    public async ValueTask DisposeAsync()
    {
        States.Dispose();
        await Log.DisposeAsync().ConfigureAwait(false);
        Trace?.Dispose();
    }
}
