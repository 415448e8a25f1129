using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Storage;
using Kahuna.Server.Storage.Checkpoints;
using Kahuna.Tests.Storage;

namespace Kahuna.Tests.Partitions;

/// <summary>
/// The shipped log and the shipped store of states over a model disk, stepped by hand. Small sizes, so that little
/// writing cuts the log. One thread.
/// </summary>
internal sealed class ModelStorage(ulong logId) : ILogShell
{
    private const string Directory = "/data";

    public const long SegmentBytes = 16 * 1024;
    public const long KeepBytes = 2 * SegmentBytes;

    public long LogLimitBytes { get; init; } = 16L << 30;

    public ModelDisk Disk { get; private set; } = new();

    public SegmentedLog? Log { get; private set; }

    public IStateStore? States { get; private set; }

    public List<string> Lines { get; } = [];

    /// <summary>Opens what the disk has.</summary>
    public void Open()
    {
        SegmentedLogOptions options = new()
        {
            SegmentBytes = SegmentBytes,
            FirstSegmentBytes = SegmentBytes,
            KeepBytes = KeepBytes,
            LogLimitBytes = LogLimitBytes,
            LogId = logId,
        };
        Log = SegmentedLog.Open(Directory, options, Disk, line => Lines.Add(line.ToString()));
        Log.Attach(this);
        States = new MergingStateStore(new FileStateStore(Disk, Directory + "/state"));
    }

    /// <summary>Runs what the log's threads would; true when something was written.</summary>
    public bool Step()
    {
        bool wrote = false;
        while (Log!.CommitOnce())
        {
            wrote = true;
        }

        Log.PrepareOnce();
        while (Log.FetchOnce())
        {
            wrote = true;
        }

        return wrote;
    }

    /// <summary>What happens about once a second.</summary>
    public void Tick() => Log!.CheckSpace();

    /// <summary>The power fails.</summary>
    public void Crash(Random? random = null)
    {
        Log = null;
        States = null;
        Disk.Crash(random);
    }

    /// <summary>The directory is gone.</summary>
    public void Wipe() => Disk = new ModelDisk();

    void ILogShell.WakeCommit()
    {
    }

    void ILogShell.WakePrepare()
    {
    }

    void ILogShell.WakeFetch()
    {
    }
}
