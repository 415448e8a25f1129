using System.Text;
using Google.Protobuf;
using Grpc.Core;
using Kahuna.Server.Api.Errors;
using Kahuna.Server.Api.Protos;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Watches;
using Frame = Kahuna.Wire.Frames.Frame;

namespace Kahuna.Server.Api;

/// <summary>
/// Turns the frames of a watch into messages for a foreign client. Owned by one call, one thread at a time.
/// </summary>
/// <param name="request">What the caller asks for.</param>
/// <param name="start">Where the watch is.</param>
internal sealed class WatchMessages(WatchKeyValuesRequest request, WatchStart start)
{
    /// <summary>Progress comes once a second; this much earlier is early enough.</summary>
    private const int EarlyMs = 200;

    private readonly Queue<WatchMessage> _ready = new();
    private readonly ChangePoint[] _points = [.. start.Points];
    private readonly uint[] _behindMs = [.. start.Points.Select(static _ => uint.MaxValue)];
    private readonly OpenTransaction?[] _open = new OpenTransaction?[start.Points.Length];
    private WatchMessage _message = new();
    private NodeTime _lastProgress;

    /// <summary>Why the watch was refused; null: it was not.</summary>
    public RpcException? Refusal { get; private set; }

    /// <summary>The next message to send; null: there is none.</summary>
    public WatchMessage? Take() => _ready.TryDequeue(out WatchMessage? message) ? message : null;

    /// <summary>A message that has only the position, if there is one yet.</summary>
    public WatchKeyValuesResponse Begun() => new() { Position = Position() };

    /// <summary>Reads a frame, as it is sent to the SDK.</summary>
    public void Read(ReadOnlySpan<byte> sent, NodeTime now)
    {
        Frame.TryGetPayload(sent[Frame.GrpcPrefixBytes..], out ReadOnlySpan<byte> payload);
        Frame.TryReadHeader(payload, out FrameKind kind, out _, out int count);
        payload = payload[Frame.HeaderBytes..];
        switch (kind)
        {
            case FrameKind.Changes:
                ReadChanges(payload);
                Flush();
                break;
            case FrameKind.Progress:
                ReadProgress(payload, count);
                Flush();
                AddProgress(now);
                break;
            case FrameKind.Notices:
                while (WatchNotice.TryRead(ref payload, out WatchNotice notice))
                {
                    Add(in notice);
                }

                break;
        }
    }

    private static int PartitionOf(uint group) => new GroupId(group).Partition;

    private void ReadChanges(ReadOnlySpan<byte> payload)
    {
        WatchedChange.TryReadFrameHeader(ref payload, out uint group, out ulong epoch);
        int partition = PartitionOf(group);
        while (WatchedChange.TryRead(ref payload, out WatchedChange change))
        {
            ChangePoint point = new(group, epoch, change.Index, change.N);
            OpenTransaction? open = _open[partition];
            if (open is not null && !open.Has(in change))
            {
                Close(partition);
                open = null;
            }

            if (change.Transaction != 0 && open is null)
            {
                open = _open[partition] = new OpenTransaction(change.Index, change.Transaction);
            }

            if (start.IsShown(partition, change.Key, point))
            {
                // The entries show it already.
            }
            else if (open is null)
            {
                Add(_message, in change);
            }
            else
            {
                Add(open.Message, in change);
            }

            if (open is null)
            {
                _points[partition] = point;
            }
            else
            {
                open.Last = point;
            }
        }
    }

    private void ReadProgress(ReadOnlySpan<byte> payload, int count)
    {
        for (int i = 0; i < count && WatchProgress.TryRead(ref payload, out WatchProgress progress); i++)
        {
            int partition = PartitionOf(progress.Point.Group);
            if (_open[partition] is { } open && progress.Point >= open.Last)
            {
                Close(partition);
            }

            _behindMs[partition] = progress.BehindMs;
            if (progress.Point > _points[partition])
            {
                _points[partition] = progress.Point;
            }
        }
    }

    /// <summary>All of the transaction has come.</summary>
    private void Close(int partition)
    {
        OpenTransaction open = _open[partition]!;
        _open[partition] = null;
        _points[partition] = open.Last;
        _message.Response.Events.AddRange(open.Message.Response.Events);
        _message.WithPrevious.AddRange(open.Message.WithPrevious);
    }

    private void Add(WatchMessage message, scoped in WatchedChange change)
    {
        KeyValueEvent added = new()
        {
            Kind = (KeyValueEventKind)change.Kind,
            Key = Encoding.UTF8.GetString(change.Key),
            Revision = change.Revision,
        };
        if (change.Kind == WatchedChangeKind.Set && !request.KeysOnly)
        {
            added.Value = (change.Flags & WatchedChangeFlags.NullValue) != 0
                ? new Value() : new Value { Data = ByteString.CopyFrom(change.Value) };
        }

        message.Response.Events.Add(added);
        if (request.PreviousValues && (change.Flags & WatchedChangeFlags.PreviousKept) != 0 && change.Revision > 1)
        {
            message.WithPrevious.Add(added);
        }
    }

    private void Add(scoped in WatchNotice notice)
    {
        WatchKeyValuesResponse told = new();
        switch (notice.Code)
        {
            case WatchNoticeCode.Refused or WatchNoticeCode.PermissionDenied:
                Refusal = OutcomeErrors.ToException((OutcomeStatus)notice.Status, Encoding.UTF8.GetString(notice.Text));
                return;
            case WatchNoticeCode.Compacted:
                told.Compacted = true;
                break;
            case WatchNoticeCode.EpochBegan:
                told.EpochBegan = true;
                break;
            case WatchNoticeCode.Lagging:
                told.Lagging = true;
                break;
            default:
                return;
        }

        if (notice.Code != WatchNoticeCode.Lagging)
        {
            // What came of a transaction is not completed.
            int partition = PartitionOf(notice.Point.Group);
            _open[partition] = null;
            _points[partition] = notice.Point;
        }

        told.Position = Position();
        _ready.Enqueue(new WatchMessage { Response = told });
    }

    private void AddProgress(NodeTime now)
    {
        if (request.ProgressIntervalMs == 0 || now - _lastProgress < request.ProgressIntervalMs - EarlyMs)
        {
            return;
        }

        _lastProgress = now;
        WatchKeyValuesResponse progress = new() { Progress = true, Position = Position() };
        uint behindMs = _behindMs.Max();
        if (behindMs != uint.MaxValue)
        {
            progress.BehindMs = behindMs;
        }

        _ready.Enqueue(new WatchMessage { Response = progress });
    }

    private void Flush()
    {
        if (_message.Response.Events.Count > 0)
        {
            _message.Response.Position = Position();
            _ready.Enqueue(_message);
            _message = new WatchMessage();
        }
    }

    private ByteString Position() =>
        start.IsPassed(_points) ? UnsafeByteOperations.UnsafeWrap(start.Encode(_points)) : ByteString.Empty;

    /// <summary>A transaction of which there may be more.</summary>
    private sealed class OpenTransaction(ulong index, uint transaction)
    {
        public WatchMessage Message { get; } = new();

        public ChangePoint Last { get; set; }

        public bool Has(scoped in WatchedChange change) => change.Index == index && change.Transaction == transaction;
    }
}

/// <summary>A message that is made, and the events whose previous values are to be read. Owned by its call.</summary>
internal sealed class WatchMessage
{
    public WatchKeyValuesResponse Response { get; init; } = new();

    public List<KeyValueEvent> WithPrevious { get; } = [];
}
