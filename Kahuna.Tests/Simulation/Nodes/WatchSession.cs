using Grpc.Core;
using Kahuna.Server.Api.Watches;
using Kahuna.Server.Partitions.Changes;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Tests.Simulation.Network;
using Kahuna.Tests.Simulation.Rules;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Watches;

namespace Kahuna.Tests.Simulation.Nodes;

/// <summary>
/// The node's end of a watch stream. It stands for the shipped WatchStream, which is bound to the web server's pipes:
/// hands requests to the shipped reader, and sends its frames while the client reads them. Owned by one life of a node.
/// </summary>
internal sealed class WatchSession
{
    private const double PollMs = 60;
    private const long ProgressNsMax = 1_000_000_000;

    private readonly WatchServing _serving;
    private readonly WatchLink _link;
    private readonly SimCluster _cluster;
    private readonly WatchReader _reader;
    private readonly WatchNews? _news;
    private readonly WatchAccess? _access;
    private readonly IDisposable? _rights;
    private readonly Queue<byte[]> _requests = new();
    private readonly Dictionary<uint, WatchedKeys> _watches = [];
    private bool _isAwake;

    public WatchSession(WatchServing serving, WatchLink link, SimCluster cluster)
    {
        _serving = serving;
        _link = link;
        _cluster = cluster;
        _news = serving.Dispatcher is { } dispatcher ? new WatchNews(dispatcher, Wake) : null;
        _access = serving.Node.Access is { } access
            ? new WatchAccess(access.Gate, access.CallerOf(link.Client))
            : null;
        _rights = _access?.State.Watch(Wake);
        _reader = new WatchReader(serving.Logs, dispatch: _news, access: _access);
        if (_news is not null)
        {
            serving.Dispatcher!.Join(_news);
        }
        else
        {
            serving.Later(PollMs, Poll);
        }

        serving.After(serving.Random.Between(0L, ProgressNsMax), TellProgress);
    }

    public bool HasEnded { get; private set; }

    /// <summary>How often the node was paused when something was to be done.</summary>
    public long Waits => _serving.Waits;

    /// <summary>Who has to be told what, by the id of its watch: the node knows where a watch begins.</summary>
    public void Know(uint id, WatchedKeys keys) => _watches[id] = keys;

    public void Greet()
    {
        ByteBuffer hello = ByteBuffer.Rent();
        Frame.WriteServerHello(hello, slotMapVersion: 0);
        _link.SendToClient(hello.Written.ToArray());
        hello.Return();
    }

    public void Received(byte[] frame)
    {
        _requests.Enqueue(frame);
        Wake();
    }

    /// <summary>There may be something to do.</summary>
    public void Wake()
    {
        if (!_isAwake && !HasEnded)
        {
            _isAwake = true;
            _serving.Later(0.05, () =>
            {
                _isAwake = false;
                Run();
            });
        }
    }

    /// <summary>The client is gone.</summary>
    public void End()
    {
        if (!HasEnded)
        {
            HasEnded = true;
            if (_serving.IsAlive)
            {
                _rights?.Dispose();
                _reader.Dispose();
                if (_news is not null)
                {
                    _serving.Dispatcher!.Leave(_news);
                }
            }
        }
    }

    /// <summary>The process is gone.</summary>
    public void Die(bool silently)
    {
        if (!HasEnded)
        {
            HasEnded = true;
            if (!silently)
            {
                _link.EndFromNode();
            }
        }
    }

    /// <summary>The connection is lost.</summary>
    public void Reset()
    {
        if (!HasEnded)
        {
            _link.Abort();
            _link.Arrived?.Invoke();
        }
    }

    private void Poll()
    {
        if (!HasEnded)
        {
            Run();
            _serving.Later(PollMs, Poll);
        }
    }

    private void TellProgress()
    {
        if (!HasEnded)
        {
            _reader.RequestProgress();
            Wake();
            _serving.After(ProgressNsMax, TellProgress);
        }
    }

    private void Run()
    {
        if (HasEnded)
        {
            return;
        }

        while (MayTell())
        {
            while (_requests.Count > 0 && _reader.MayTake)
            {
                Take(_requests.Dequeue());
            }

            if (!_link.HasRoom)
            {
                return;
            }

            ByteBuffer frame = ByteBuffer.Rent();
            NodeTime now = new(_serving.Node.Clock.GetTimestamp() / 1_000_000);
            WatchFill fill = _reader.Fill(frame, now);
            if (fill == WatchFill.Frame)
            {
                byte[] bytes = frame.Written.ToArray();
                Check(bytes);
                _link.SendToClient(bytes);
            }

            frame.Return();
            if (fill == WatchFill.Later || (fill == WatchFill.Frame && _serving.Random.Chance(0.3)))
            {
                Wake();
                return;
            }

            if (fill == WatchFill.Nothing)
            {
                return;
            }
        }
    }

    private void Take(byte[] frame)
    {
        ReadOnlySpan<byte> rest = frame;
        while (WatchRequest.TryRead(ref rest, out WatchRequest request))
        {
            if (request.Operation == WatchOperation.Begin && _watches.TryGetValue(request.Id, out WatchedKeys? keys))
            {
                Start(keys, _serving.Logs);
            }

            if (_reader.Take(in request) is { } wrong)
            {
                _cluster.Rules.Break(WatchedKeys.Rule, $"a stream of node {_serving.Node.Id} ends: {wrong}");
            }
        }
    }

    /// <summary>As the shipped pump does: rights are known, and what the client may no longer watch ends.</summary>
    private bool MayTell()
    {
        if (_access is null)
        {
            return true;
        }

        try
        {
            if (!_access.Look())
            {
                return false;
            }
        }
        catch (RpcException)
        {
            Reset();
            return false;
        }

        if (_access.HasChanged)
        {
            _reader.EndForbidden();
        }

        return true;
    }

    /// <summary>In groups that it does not name a watch begins where the node is.</summary>
    public static void Start(WatchedKeys watch, ChangeLogs logs)
    {
        for (int slot = 0; slot < logs.Count; slot++)
        {
            if (logs[slot] is { } log)
            {
                watch.Starts(slot, log.Status.Applied);
            }
        }
    }

    /// <summary>What only the node knows: whether changes are gone, and when it had what it sends.</summary>
    private void Check(byte[] bytes)
    {
        ReadOnlySpan<byte> rest = bytes.AsSpan(Frame.PrefixBytes);
        Frame.TryReadHeader(rest, out FrameKind kind, out _, out int count);
        rest = rest[Frame.HeaderBytes..];
        for (int i = 0; i < count && kind is FrameKind.Notices or FrameKind.Progress; i++)
        {
            if (kind == FrameKind.Progress)
            {
                WatchProgress.TryRead(ref rest, out WatchProgress progress);
                if (progress.BehindMs != uint.MaxValue)
                {
                    int slot = _cluster.Config.Layout.IndexOf(new GroupId(progress.Point.Group));
                    _cluster.Rules.Changes.CheckAge(
                        _serving.Node, slot, progress.Point, progress.BehindMs * 1_000_000L);
                }
            }
            else if (WatchNotice.TryRead(ref rest, out WatchNotice notice) && notice.Code == WatchNoticeCode.Compacted)
            {
                ChangeLog log = _serving.Logs[_cluster.Config.Layout.IndexOf(new GroupId(notice.Point.Group))]!;
                if (notice.Point.Index > log.Status.Lost.Index || notice.Point.Epoch != log.Status.Lost.Epoch)
                {
                    _cluster.Rules.Break(
                        WatchedKeys.Rule,
                        $"node {_serving.Node.Id} says that {GroupChanges.Text(notice.Point)} is gone, and it has "
                            + $"everything behind {GroupChanges.Text(log.Status.Lost)}");
                }
            }
        }
    }
}
