using System.Text;
using Kahuna.Server.Api.Watches;
using Kahuna.Server.Primitives;
using Kahuna.Tests.Simulation.Engine;
using Kahuna.Tests.Simulation.Network;
using Kahuna.Tests.Simulation.Nodes;
using Kahuna.Tests.Simulation.Rules;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Routing;
using Kahuna.Wire.Watches;

namespace Kahuna.Tests.Simulation.Workload;

/// <summary>
/// Watches keys over one stream at a time, fast or slowly, and goes on at another node from where each watch is when it
/// likes, or when the stream ends or is silent. Begins and ends watches meanwhile, also from earlier points. Owned by
/// one run.
/// </summary>
internal sealed class Watcher
{
    private const int WatchesMax = 8;
    private const long SoonNs = 3_000_000_000;
    private const long SilenceNs = 4_000_000_000;
    private const int FramesMax = 100_000;

    private readonly SimCluster _cluster;
    private readonly SimRandom _random;
    private readonly int _number;
    private readonly double _readMs;
    private readonly List<WatchedKeys> _watches = [];
    private readonly Dictionary<uint, WatchedKeys> _ids = [];
    private readonly HashSet<uint> _ended = [];
    private readonly List<WatchedKeys> _earlier = [];
    private WatchLink? _link;
    private bool _isOpening;
    private bool _isReading;
    private uint _lastId;
    private long _heardNs;
    private long _told;
    private long _transactions;
    private Glance? _glance;

    public Watcher(SimCluster cluster, int number)
    {
        _cluster = cluster;
        _number = number;
        _random = new SimRandom(cluster.Config.Seed).Fork(37_000 + (ulong)number);
        _readMs = _random.Pick([0, 0, 1, 20, 1_000]);
    }

    /// <summary>Changes that all its watches were told.</summary>
    public long Told => _told + _watches.Sum(static watch => watch.Told);

    /// <summary>Transactions that they were told as a whole.</summary>
    public long Transactions => _transactions + _watches.Sum(static watch => watch.Transactions);

    /// <summary>Notices that changes are gone.</summary>
    public long Compacted { get; private set; }

    /// <summary>Notices of new epochs.</summary>
    public long EpochsBegun { get; private set; }

    /// <summary>How often a watch was judged by how soon it is told.</summary>
    public long Judged { get; private set; }

    /// <summary>Streams that it went on over.</summary>
    public long Streams { get; private set; }

    public void Start() => Pause();

    /// <summary>
    /// Everything is over: on each node all watches go on from where they are, and are told what is left.
    /// </summary>
    public void Finish()
    {
        Close();
        foreach (SimNode node in _cluster.Nodes)
        {
            Forget();
            using WatchReader reader = new(node.Watches!.Logs);
            foreach (WatchedKeys watch in _watches)
            {
                ReadOnlySpan<byte> rest = Request(watch, WatchOperation.Begin);
                WatchRequest.TryRead(ref rest, out WatchRequest request);
                WatchSession.Start(watch, node.Watches.Logs);
                reader.Take(in request);
            }

            reader.RequestProgress();
            for (int frames = 0; frames < FramesMax; frames++)
            {
                ByteBuffer frame = ByteBuffer.Rent();
                WatchFill fill = reader.Fill(frame, new NodeTime(node.Clock.GetTimestamp() / 1_000_000));
                byte[] bytes = frame.Written.ToArray();
                frame.Return();
                if (fill == WatchFill.Nothing)
                {
                    break;
                }

                if (fill == WatchFill.Frame)
                {
                    Hear(bytes);
                }
            }

            foreach (WatchedKeys watch in _watches)
            {
                watch.CheckEnd($"on node {node.Id}");
            }
        }
    }

    private void Pause() => _cluster.Scheduler.After(1_000 + (long)(_random.Exponential(200) * 1_000_000), Step);

    private void Step()
    {
        CheckSoon();
        if (_link is null && !_isOpening)
        {
            Open();
        }
        else if (_link is { } link)
        {
            bool isSilent = _cluster.Scheduler.NowNs - _heardNs > SilenceNs && _readMs < 100;
            if (isSilent || link.HasEnded || _random.Chance(0.02))
            {
                Close();
            }
            else if (_random.Chance(0.06))
            {
                BeginOne();
            }
            else if (_random.Chance(0.03) && _watches.Count > 1)
            {
                EndOne();
            }
        }

        Pause();
    }

    /// <summary>A watcher that reads at once is told soon what its node has, where nothing is in the way.</summary>
    private void CheckSoon()
    {
        if (_readMs > 1 || _cluster.Scheduler.NowNs - _glance?.AtNs < SoonNs)
        {
            return;
        }

        if (_link is { HasEnded: false, Session.HasEnded: false } link)
        {
            if (_glance is { } glance && glance.Link == link && glance.Waits == link.Waits)
            {
                foreach (WatchedKeys watch in _watches.Intersect(glance.Watches))
                {
                    watch.CheckReached(glance.Applied);
                    Judged++;
                }
            }

            ChangePoint[] applied =
            [
                .. Enumerable.Range(0, _cluster.Config.Layout.Count).Select(
                    slot => link.Node.ChangeLogs![slot]?.Status.Applied ?? default),
            ];
            _glance = new Glance(_cluster.Scheduler.NowNs, link, link.Waits, [.. _watches], applied);
        }
    }

    private void Open()
    {
        SimNode node = _random.Pick(_cluster.Nodes);
        if (!node.IsUp || node.IsPaused || _cluster.Clients.IsCut(_number, node.Id))
        {
            return;
        }

        _isOpening = true;
        long delayNs = (long)_random.Exponential(2 * _cluster.Config.DelayNs);
        _cluster.Scheduler.After(delayNs, () =>
        {
            _isOpening = false;
            if (node is { IsUp: true, Watches: { } serving })
            {
                Forget();
                WatchLink link = new(_cluster, _random.Fork(_lastId), _number, node) { Arrived = Arrive };
                link.Session = serving.Open(link, _cluster);
                _link = link;
                _heardNs = _cluster.Scheduler.NowNs;
                Streams++;
                foreach (WatchedKeys watch in _watches)
                {
                    Send(watch);
                }

                while (_watches.Count == 0 || _random.Chance(0.4))
                {
                    BeginOne();
                }
            }
        });
    }

    private void Close()
    {
        _link?.Abort();
        _link = null;
        Forget();
    }

    /// <summary>The next stream has other ids, and begins where each watch is.</summary>
    private void Forget()
    {
        _ids.Clear();
        _ended.Clear();
        foreach (WatchedKeys watch in _watches)
        {
            watch.Restart();
        }
    }

    private void BeginOne()
    {
        if (_watches.Count == WatchesMax)
        {
            return;
        }

        if (_watches.Count > 0 && _random.Chance(0.5))
        {
            _earlier.Add(_random.Pick(_watches).Copy(_cluster, Name()));
        }

        WatchedKeys watch = _earlier.Count > 0 && _random.Chance(0.4) ? TakeEarlier() : Draw();
        _watches.Add(watch);
        Send(watch);
    }

    /// <summary>Keys that were watched before, from where they were then.</summary>
    private WatchedKeys TakeEarlier()
    {
        int at = _random.Next(_earlier.Count);
        WatchedKeys watch = _earlier[at];
        _earlier.RemoveAt(at);
        watch.Restart();
        return watch;
    }

    private WatchedKeys Draw()
    {
        bool isEphemeral = _cluster.Config.HasEphemeral && _random.Chance(0.5);
        WatchScope scope = _random.Pick([WatchScope.Key, WatchScope.Bucket, WatchScope.Prefix, WatchScope.Prefix]);
        string key = AnyKey();
        string name = scope switch
        {
            WatchScope.Key => key,
            WatchScope.Bucket => Encoding.UTF8.GetString(KeyRouting.Bucket(Encoding.UTF8.GetBytes(key))),
            _ => key[..Math.Min(key.Length, _random.Pick([0, 0, 1, 1, 2, 3, 100]))],
        };
        return new WatchedKeys(
            _cluster,
            Name(),
            isEphemeral ? Durability.Ephemeral : Durability.Persistent,
            scope,
            name,
            withValues: _random.Chance(0.7));
    }

    private string AnyKey()
    {
        int slot = _random.Next(_cluster.Config.Layout.Count);
        IReadOnlyList<ToldChange> all = _cluster.Rules.Changes.Of(slot)?.All ?? [];
        return all.Count > 0 ? all[^(1 + _random.Next(Math.Min(all.Count, 50)))].Key : "k0.0";
    }

    private string Name() => $"watcher {_number}";

    private void EndOne()
    {
        (uint id, WatchedKeys watch) = _random.Pick(_ids.ToArray());
        _watches.Remove(watch);
        _told += watch.Told;
        _transactions += watch.Transactions;
        _ids.Remove(id);
        _ended.Add(id);
        _link!.SendToNode(Encode(new WatchRequest { Operation = WatchOperation.End, Id = id }));
    }

    private void Send(WatchedKeys watch)
    {
        byte[] request = Request(watch, WatchOperation.Begin);
        _link!.Session!.Know(_lastId, watch);
        _link.SendToNode(request);
    }

    private byte[] Request(WatchedKeys watch, WatchOperation operation)
    {
        _ids[++_lastId] = watch;
        return Encode(new WatchRequest
        {
            Operation = operation,
            Id = _lastId,
            Durability = watch.Durability,
            Scope = watch.Scope,
            Flags = watch.Flags,
            Points = watch.Points(),
            Name = watch.Name,
        });
    }

    private static byte[] Encode(in WatchRequest request)
    {
        ByteBuffer buffer = ByteBuffer.Rent();
        request.Write(buffer);
        byte[] encoded = buffer.Written.ToArray();
        buffer.Return();
        return encoded;
    }

    // ---- What comes

    private void Arrive()
    {
        if (_isReading)
        {
            return;
        }

        _isReading = true;
        WatchLink? link = _link;
        _cluster.Scheduler.After((long)(_random.Exponential(_readMs) * 1_000_000), () =>
        {
            _isReading = false;
            if (link is null || link != _link || link.Take() is not { } frame)
            {
                return;
            }

            _heardNs = _cluster.Scheduler.NowNs;
            Hear(frame);
            Arrive();
        });
    }

    private void Hear(byte[] frame)
    {
        ReadOnlySpan<byte> rest = frame.AsSpan(Frame.PrefixBytes);
        Frame.TryReadHeader(rest, out FrameKind kind, out _, out int count);
        rest = rest[Frame.HeaderBytes..];
        switch (kind)
        {
            case FrameKind.Changes:
                HearChanges(rest, count);
                break;
            case FrameKind.Progress:
                for (int i = 0; i < count && WatchProgress.TryRead(ref rest, out WatchProgress progress); i++)
                {
                    int slot = SlotOf(progress.Point.Group);
                    _watches.ForEach(watch => watch.Progress(slot, progress.Point));
                }

                break;
            case FrameKind.Notices:
                for (int i = 0; i < count && WatchNotice.TryRead(ref rest, out WatchNotice notice); i++)
                {
                    Hear(in notice);
                }

                break;
            default:
                _cluster.Rules.Break(WatchedKeys.Rule, $"a frame of {kind} came to {Name()}");
                break;
        }
    }

    private void HearChanges(ReadOnlySpan<byte> rest, int count)
    {
        WatchedChange.TryReadFrameHeader(ref rest, out uint group, out ulong epoch);
        int slot = SlotOf(group);
        for (int i = 0; i < count; i++)
        {
            if (!WatchedChange.TryRead(ref rest, out WatchedChange change))
            {
                _cluster.Rules.Break(WatchedKeys.Rule, "a change is malformed");
            }

            for (int j = 0; j < change.WatchCount; j++)
            {
                if (Find(change.Watch(j)) is { } watch)
                {
                    watch.Change(slot, new ChangePoint(group, epoch, change.Index, change.N), in change);
                }
            }

            // A change that is not of a transaction says that this one has ended.
            ChangePoint point = new(group, epoch, change.Index, change.N);
            _watches.ForEach(watch => watch.Meets(slot, point));
        }
    }

    private void Hear(in WatchNotice notice)
    {
        ChangePoint point = notice.Point;
        IReadOnlyList<WatchedKeys> concerned = notice.Watch == 0
            ? _watches : Find(notice.Watch) is { } one ? [one] : [];
        switch (notice.Code)
        {
            case WatchNoticeCode.Begun:
                concerned.ToList().ForEach(static watch => watch.Begun());
                break;
            case WatchNoticeCode.Compacted:
                Compacted++;
                concerned.ToList().ForEach(watch => watch.Compacted(SlotOf(point.Group), point));
                break;
            case WatchNoticeCode.EpochBegan:
                EpochsBegun++;
                concerned.ToList().ForEach(watch => watch.EpochBegan(SlotOf(point.Group), point));
                break;
            case WatchNoticeCode.Lagging:
                break;
            default:
                _cluster.Rules.Break(
                    WatchedKeys.Rule, $"{Name()}: {notice.Code}, {Encoding.UTF8.GetString(notice.Text)}");
                break;
        }
    }

    private WatchedKeys? Find(uint id)
    {
        if (!_ids.TryGetValue(id, out WatchedKeys? watch) && !_ended.Contains(id))
        {
            _cluster.Rules.Break(WatchedKeys.Rule, $"{Name()} was told something of watch {id}, which is not its own");
        }

        return watch;
    }

    private int SlotOf(uint group) => _cluster.Config.Layout.IndexOf(new GroupId(group));

    /// <summary>How it was a while ago.</summary>
    /// <param name="AtNs">When.</param>
    /// <param name="Link">The stream.</param>
    /// <param name="Waits">How often something had to wait.</param>
    /// <param name="Watches">The watches.</param>
    /// <param name="Applied">What the node had, by group.</param>
    private sealed record Glance(
        long AtNs, WatchLink Link, long Waits, IReadOnlyList<WatchedKeys> Watches, ChangePoint[] Applied);
}
