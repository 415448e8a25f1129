using System.Globalization;
using Kahuna.Server.Storage;
using Kahuna.Tests.Simulation.Engine;
using Kahuna.Tests.Simulation.Nodes;
using Kahuna.Tests.Storage;

namespace Kahuna.Tests.Simulation.Faults;

/// <summary>What disks do wrong. Owned by one run.</summary>
internal sealed class DiskFaults(Nemesis nemesis)
{
    private const int InputOutputError = 5;

    /// <summary>Part of the flipped bits that are in the last batch but one of the log.</summary>
    private const double NewestPart = 0.4;

    /// <summary>Nodes on whose disk a bit was flipped.</summary>
    private readonly HashSet<int> _damaged = [];

    /// <summary>Nodes whose disk fails at present, or did since their last start.</summary>
    private readonly HashSet<int> _failing = [];

    public bool IsDamaged(SimNode node) => _damaged.Contains(node.Id);

    public void Forget(SimNode node) => _damaged.Remove(node.Id);

    /// <summary>Whether it is the disk's doing when storage fails.</summary>
    public bool Explains(SimNode node) => _failing.Contains(node.Id) || _damaged.Contains(node.Id);

    public void Ended(SimNode node)
    {
        // A full disk stays full; everything else is over with the process.
        node.DiskFault = null;
        if (node.Disk.Capacity > long.MaxValue / 4)
        {
            _failing.Remove(node.Id);
        }
    }

    public void Heal(SimNode node)
    {
        node.SyncFactor = 1;
        node.Hung.Set(false);
        node.DiskFault = null;
        node.Disk.Capacity = long.MaxValue / 2;
    }

    /// <summary>Begins a fault; returns what ends it, or null when it was not possible now.</summary>
    public Action? Apply(FaultClass kind, SimNode node, SimRandom random)
    {
        if (!node.IsUp)
        {
            return null;
        }

        switch (kind)
        {
            case FaultClass.SlowSync:
                node.SyncFactor = 2 + random.Exponential(60);
                nemesis.Target = string.Create(
                    CultureInfo.InvariantCulture, $"of node {node.Id}, {node.SyncFactor:0} times as slow");
                return () => node.SyncFactor = 1;
            case FaultClass.DiskHang:
                node.Hung.Set(true);
                nemesis.Target = $"of node {node.Id}";
                return () => node.Hung.Set(false);
            case FaultClass.FullDisk:
                _failing.Add(node.Id);
                int room = random.Next(20_000);
                node.Disk.Capacity = node.Disk.Used + room;
                nemesis.Target = $"of node {node.Id}, {room} bytes are free";
                return () => node.Disk.Capacity = long.MaxValue / 2;
            case FaultClass.SyncError:
                return FailSync(node, random);
            case FaultClass.CrashInDisk:
                return random.Chance(0.4) ? KillInside(node, random) : CrashInside(node, random);
            case FaultClass.Wipe:
                return Lose(node);
            case FaultClass.LostLog:
                return LoseSegments(node, random);
            case FaultClass.WipeTwice:
                return LoseTwice(node, random);
            default:
                return Flip(node, random);
        }
    }

    private Action FailSync(SimNode node, SimRandom random)
    {
        int left = random.Next(5);
        _failing.Add(node.Id);
        nemesis.Target = $"of node {node.Id}, after {left} syncs";
        node.DiskFault = (step, _) => step is DiskStep.SyncData or DiskStep.SyncDirectory && left-- <= 0
            ? InputOutputError
            : 0;
        return () => node.DiskFault = null;
    }

    private Action CrashInside(SimNode node, SimRandom random)
    {
        // Half of the time while much is on its way to the disk, so that parts of it may be missing afterwards.
        int bytes = random.Chance(0.5) ? random.Pick([600, 600, 1_500, 4_000]) : 0;
        int left = bytes > 0 ? random.Next(2) : random.Next(60);
        node.DiskFault = (step, path) => !Counts(step, path) || left-- > 0
            ? 0
            : throw new SimCrashException(power: true);
        bool Counts(DiskStep step, string path) =>
            bytes == 0 ? step != DiskStep.Read : step == DiskStep.SyncData && node.Disk.Unsynced(path) >= bytes;
        return () =>
        {
            node.DiskFault = null;
            nemesis.StartLater(node, 0);
        };
    }

    /// <summary>
    /// The process is killed inside a disk operation, often while it makes a name stable, whenever that is; it starts
    /// again, and soon its power fails.
    /// </summary>
    private Action KillInside(SimNode node, SimRandom random)
    {
        string? naming = random.Pick([null, string.Empty, "/state", "/state", "/state"]);
        int left = random.Next(naming is null ? 60 : 3);
        long after = random.Between(1_000_000L, 100_000_000L);
        long powerAfter = after + random.Between(1_000_000L, 2_000_000_000L);
        node.DiskFault = (step, path) => !Counts(step, path) || left-- > 0 ? 0 : throw End();
        return () => nemesis.StartLater(node, 0);

        bool Counts(DiskStep step, string path) =>
            naming is null
                ? step != DiskStep.Read
                : step == DiskStep.SyncDirectory && path.EndsWith(naming, StringComparison.Ordinal);
        SimCrashException End()
        {
            nemesis.StartLater(node, after);
            node.Scheduler.After(powerAfter, () =>
            {
                node.Crash(power: true);
                nemesis.StartLater(node, after);
            });
            return new SimCrashException(power: false);
        }
    }

    private Action? Lose(SimNode node)
    {
        if (!nemesis.MayLose(node))
        {
            return null;
        }

        node.Crash(power: true);
        node.Wipe();
        return () => nemesis.StartLater(node, 0);
    }

    private Action? LoseTwice(SimNode node, SimRandom random)
    {
        Action? end = Lose(node);
        if (end is not null)
        {
            long after = random.Between(20_000_000L, 500_000_000L);
            bool power = random.Chance(0.5);
            nemesis.StartLater(node, after);
            node.Scheduler.After(after + random.Between(20_000_000L, 3_000_000_000L), () =>
            {
                node.Crash(power);
                nemesis.StartLater(node, after);
            });
        }

        return end;
    }

    /// <summary>
    /// The newest segments, or the whole log, are not there any more when the node starts again. It must not go on with
    /// what is left.
    /// </summary>
    private Action? LoseSegments(SimNode node, SimRandom random)
    {
        if (!nemesis.MayLose(node))
        {
            return null;
        }

        node.Crash(power: random.Chance(0.5));
        string[] segments = [.. node.Disk.Files.Where(static path => path.EndsWith(".seg", StringComparison.Ordinal))];
        foreach (string path in segments.TakeLast(random.Pick([1, 1, 2, 2, 3, segments.Length])))
        {
            node.Disk.Delete(path);
            node.Disk.SyncDirectory(Path.GetDirectoryName(path)!);
        }

        _damaged.Add(node.Id);
        return () => nemesis.StartLater(node, 0);
    }

    /// <summary>
    /// A bit of what has been on stable storage for a while changes while the node is down, or of a batch of the log
    /// that another one follows.
    /// </summary>
    private Action? Flip(SimNode node, SimRandom random)
    {
        if (!nemesis.MayLose(node))
        {
            return null;
        }

        node.Crash(power: false);
        string[] states = [.. node.Disk.Files.Where(static path => path.Contains("/state/", StringComparison.Ordinal))];
        string[] segments = [.. node.Disk.Files.Where(static path => path.EndsWith(".seg", StringComparison.Ordinal))];
        nemesis.Target = $"of node {node.Id}";
        string[] files = [.. states, .. segments.SkipLast(2)];
        if (random.Chance(NewestPart))
        {
            // The newest segment may be prepared and not used yet.
            _ = segments.Reverse().Any(path => TryFlipBeforeLastBatch(node, path, random));
        }
        else if (files.Length > 0)
        {
            _damaged.Add(node.Id);
            string path = random.Pick(files);
            nemesis.Target = $"of node {node.Id} in {path}";
            node.Disk.Change(path, content =>
            {
                int at = random.Next(Math.Max(1, content.Length));
                if (at < content.Length)
                {
                    content[at] ^= (byte)(1 << random.Next(8));
                }
            });
        }

        return () => nemesis.StartLater(node, 0);
    }

    /// <summary>
    /// The bit is in the last batch but one, of which nothing outside of the log may tell yet. Only the batch behind it
    /// proves that it was on stable storage.
    /// </summary>
    private bool TryFlipBeforeLastBatch(SimNode node, string path, SimRandom random)
    {
        bool isDone = false;
        node.Disk.Change(path, content =>
        {
            if (SegmentHeader.Read(content, out _) is not { } header)
            {
                return;
            }

            (int before, int last) = (0, 0);
            for (int at = SegmentHeader.Bytes; at + LogRecord.BatchBytes <= content.Length; at++)
            {
                if (LogRecord.TryReadBatch(content.AsSpan(at), header.Seal, out _, out _))
                {
                    (before, last) = (last, at);
                }
            }

            if (before > 0)
            {
                isDone = true;
                _damaged.Add(node.Id);
                nemesis.Target = $"of node {node.Id} in {path}, before its last batch";
                content[random.Between(before, last - 1)] ^= (byte)(1 << random.Next(8));
            }
        });
        return isDone;
    }
}
