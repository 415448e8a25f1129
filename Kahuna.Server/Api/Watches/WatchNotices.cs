using System.Text;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Watches;

namespace Kahuna.Server.Api.Watches;

/// <summary>Notices of one stream that wait to be sent. Owned by its <see cref="WatchReader"/>.</summary>
internal sealed class WatchNotices
{
    /// <summary>Places that an empty queue keeps.</summary>
    private const int KeptMax = 64;

    private readonly Queue<Notice> _waiting = new();

    public int Count => _waiting.Count;

    /// <summary>Tells one watch, or all with 0.</summary>
    public void Add(WatchNoticeCode code, uint watch, ChangePoint point) =>
        _waiting.Enqueue(new Notice(code, watch, point, default, null));

    /// <summary>A watch is not begun.</summary>
    public void Refuse(uint watch, OutcomeStatus status, string sentence) =>
        _waiting.Enqueue(new Notice(WatchNoticeCode.Refused, watch, default, status, sentence));

    /// <summary>A watch that had begun has ended, because the caller has lost the right to it.</summary>
    public void Forbid(uint watch, string sentence) =>
        _waiting.Enqueue(new Notice(
            WatchNoticeCode.PermissionDenied, watch, default, OutcomeStatus.PermissionDenied, sentence));

    /// <summary>Makes a frame of the next ones.</summary>
    public void Write(ByteBuffer frame)
    {
        Frame.Begin(frame, FrameKind.Notices);
        int count = 0;
        while (frame.Length < Limits.FrameBytesTarget && _waiting.TryDequeue(out Notice notice))
        {
            new WatchNotice
            {
                Code = notice.Code,
                Watch = notice.Watch,
                Status = (uint)notice.Status,
                Point = notice.Point,
                Text = notice.Text is null ? default : Encoding.UTF8.GetBytes(notice.Text),
            }.Write(frame);
            count++;
        }

        if (_waiting.Count == 0 && _waiting.Capacity > KeptMax)
        {
            _waiting.TrimExcess();
        }

        Frame.End(frame, count);
    }

    private readonly record struct Notice(
        WatchNoticeCode Code, uint Watch, ChangePoint Point, OutcomeStatus Status, string? Text);
}
