using System.Diagnostics;
using Kahuna.Wire.Frames;

namespace Kahuna.Server.Api;

/// <summary>
/// To which traces the requests of a stream's next frame belong. Owned by the stream's reader; not thread-safe.
/// </summary>
/// <param name="traces">Keeps the traces of what is under way.</param>
internal sealed class StreamTraces(TraceContexts traces)
{
    private readonly Dictionary<uint, ActivityContext> _parents = [];

    /// <summary>Requests of the next frame are traced.</summary>
    public bool Any => _parents.Count > 0;

    /// <summary>The items of a Traces frame have their form.</summary>
    public static bool IsGood(ReadOnlySpan<byte> items, int count) =>
        count <= TraceFrame.ItemsMax && items.Length == count * TraceFrame.ItemBytes;

    /// <summary>Takes a Traces frame; false: it is malformed. What is more than a frame's worth is left out.</summary>
    public bool Take(ReadOnlySpan<byte> items, int count)
    {
        if (!IsGood(items, count))
        {
            return false;
        }

        for (; items.Length > 0 && _parents.Count < TraceFrame.ItemsMax; items = items[TraceFrame.ItemBytes..])
        {
            if (TraceFrame.TryRead(items[..TraceFrame.ItemBytes], out uint number, out ActivityContext parent))
            {
                _parents[number] = parent;
            }
        }

        return true;
    }

    /// <summary>Where the trace of a request is kept; 0: it is not traced.</summary>
    public ushort TraceOf(uint number) =>
        _parents.TryGetValue(number, out ActivityContext parent) ? traces.Begin(in parent) : (ushort)0;

    /// <summary>The activity of the client; the default: the request is not traced.</summary>
    public ActivityContext ParentOf(uint number) => _parents.GetValueOrDefault(number);

    /// <summary>The frame with the requests was read.</summary>
    public void Clear() => _parents.Clear();
}
