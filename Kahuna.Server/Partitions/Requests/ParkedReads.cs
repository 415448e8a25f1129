using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Partitions.Requests;

/// <summary>
/// The reads of a partition that wait until their clients have taken earlier answers, each client's in their order.
/// Owned by a partition's <see cref="PendingRequests"/>; not thread-safe.
/// </summary>
internal sealed class ParkedReads(ReplyFrames replies)
{
    /// <summary>The room that an answer of unknown size needs at the least.</summary>
    private const int AnyBytes = 1;

    private readonly Dictionary<ReplySink, Line> _lines = [];
    private readonly List<ReplySink> _due = [];

    /// <summary>Reads that wait.</summary>
    public int Count { get; private set; }

    /// <summary>Clients whose line is to be looked at.</summary>
    public int DueCount => _due.Count;

    /// <summary>Reads of this client wait, so a further one has to wait behind them.</summary>
    public bool Holds(ReplySink sink) => Count > 0 && _lines.ContainsKey(sink);

    /// <summary>Adds a read at the end of its client's line.</summary>
    /// <param name="sink">The client.</param>
    /// <param name="read">The read.</param>
    /// <param name="answerBytes">The room that its answer needs, as far as it is known.</param>
    public void Add(ReplySink sink, in ParkedRead read, int answerBytes = AnyBytes)
    {
        if (!_lines.TryGetValue(sink, out Line? line))
        {
            line = new Line { AnswerBytes = answerBytes };
            _lines.Add(sink, line);
            _due.Add(sink);
        }

        line.Reads.Add(read);
        Count++;
    }

    /// <summary>Something of the client's answers has left, or the client has.</summary>
    public void Wake(ReplySink sink)
    {
        if (Holds(sink))
        {
            _due.Add(sink);
        }
    }

    /// <summary>
    /// Looks at every line again: the node may have room, and unary callers may have gone, without a word to anybody
    /// here.
    /// </summary>
    public void WakeAll()
    {
        if (Count > 0)
        {
            _due.Clear();
            _due.AddRange(_lines.Keys);
        }
    }

    /// <summary>A client whose line is to be looked at.</summary>
    public ReplySink Due(int place) => _due[place];

    /// <summary>The first lines that were due have been looked at.</summary>
    public void Looked(int lines)
    {
        InvariantException.Require(lines <= _due.Count, "lines that were looked at were due");
        _due.RemoveRange(0, lines);
    }

    /// <summary>
    /// The first of a client's line, when there is room for its answer or the client is gone. Otherwise the client's
    /// sink will tell when something has left.
    /// </summary>
    public bool TryPeek(ReplySink sink, out ParkedRead read)
    {
        read = default;
        if (!_lines.TryGetValue(sink, out Line? line))
        {
            return false;
        }

        if (!sink.IsClosed && !replies.HasRoom(sink, line.AnswerBytes))
        {
            // The sink may have told of the last bytes before it was asked to.
            replies.TellWhenLeft(sink);
            if (!replies.HasRoom(sink, line.AnswerBytes))
            {
                return false;
            }
        }

        read = line.Reads[0];
        return true;
    }

    /// <summary>The answer of the first of a client's line is larger than the room: so much it needs.</summary>
    public void Need(ReplySink sink, int answerBytes) => _lines[sink].AnswerBytes = answerBytes;

    /// <summary>Takes the first of a client's line.</summary>
    public ParkedRead Take(ReplySink sink)
    {
        Line line = _lines[sink];
        ParkedRead read = line.Reads.Take();
        line.AnswerBytes = AnyBytes;
        Count--;
        InvariantException.Require(Count >= line.Reads.Count, "parked reads are counted");
        if (line.Reads.Count == 0)
        {
            _lines.Remove(sink);
        }

        return read;
    }

    /// <summary>Takes any read; false when none is left.</summary>
    public bool TryDrop(out ReplySink? sink, out ParkedRead read)
    {
        foreach (ReplySink first in _lines.Keys)
        {
            sink = first;
            read = Take(first);
            return true;
        }

        (sink, read) = (null, default);
        _due.Clear();
        return false;
    }

    private sealed class Line
    {
        public Ring<ParkedRead> Reads { get; } = new(16);

        public required int AnswerBytes { get; set; }
    }
}
