using System.Diagnostics;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Frames;

namespace Kahuna.Client.Connection;

/// <summary>
/// To which traces requests of the open frame belong: a frame of its own, which is sent before it. Owned by a
/// <see cref="RequestQueue"/> and guarded by its stream's lock.
/// </summary>
internal sealed class RequestTraces
{
    private ByteBuffer? _bytes;
    private int _count;

    /// <summary>Adds a request. When the frame is full, further requests are not traced.</summary>
    public void Add(uint number, Activity activity)
    {
        if (_count == TraceFrame.ItemsMax || activity.IdFormat != ActivityIdFormat.W3C)
        {
            return;
        }

        if (_bytes is null)
        {
            _bytes = ByteBuffer.Rent();
            Frame.Begin(_bytes, FrameKind.Traces);
        }

        TraceFrame.Append(_bytes, number, activity.Context);
        _count++;
    }

    /// <summary>Hands over the finished frame; null: no request is traced.</summary>
    public ByteBuffer? Take()
    {
        ByteBuffer? taken = _bytes;
        if (taken is not null)
        {
            Frame.End(taken, _count);
        }

        _bytes = null;
        _count = 0;
        return taken;
    }

    /// <summary>Drops the frame.</summary>
    public void Clear() => Take()?.Return();
}
