using System.Diagnostics.CodeAnalysis;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Partitions.Requests;

/// <summary>
/// The reads of a partition that wait until their clients have taken earlier answers or until it is their turn: a line
/// for each client. Owned by a partition's <see cref="PendingReads"/>; not thread-safe.
/// </summary>
internal sealed class ParkedReads(ReplyFrames replies)
{
    /// <summary>The room that an answer of unknown size needs at the least.</summary>
    private const int AnyBytes = 1;

    /// <summary>
    /// Places of a new line. A client that reads page by page begins a line for each, so empty lines that have not
    /// grown are kept for others, up to <see cref="SpareMax"/>.
    /// </summary>
    private const int LinePlaces = 16;
    private const int SpareMax = 64;

    private readonly Dictionary<ReplySink, Line> _lines = [];
    private readonly List<ReplySink> _due = [];
    private readonly Stack<Line> _spare = new();

    /// <summary>Reads that wait.</summary>
    public int Count { get; private set; }

    /// <summary>A read waits, or a line is to be looked at.</summary>
    public bool HasAny => Count > 0 || _due.Count > 0;

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
            line = _spare.TryPop(out Line? spare) ? spare : new Line();
            line.AnswerBytes = answerBytes;
            line.IsDue = true;
            _lines.Add(sink, line);
            _due.Add(sink);
        }

        line.Reads.Add(read);
        line.HasGrown |= line.Reads.Count > LinePlaces;
        Count++;
    }

    /// <summary>
    /// The client has taken an answer, or has gone: its line becomes due, behind the lines that are due already.
    /// </summary>
    public void Wake(ReplySink sink)
    {
        if (Count > 0 && _lines.TryGetValue(sink, out Line? line))
        {
            MakeDue(sink, line);
        }
    }

    /// <summary>
    /// Looks at every line again: the node may have room, and unary callers may have gone, without a word to anybody
    /// here. Lines that are due keep their order.
    /// </summary>
    public void WakeAll()
    {
        foreach ((ReplySink sink, Line line) in _lines)
        {
            MakeDue(sink, line);
        }
    }

    /// <summary>A client whose line is to be looked at.</summary>
    public ReplySink Due(int place) => _due[place];

    /// <summary>The first lines that were due have been looked at.</summary>
    public void Looked(int lines)
    {
        InvariantException.Require(lines <= _due.Count, "lines that were looked at were due");
        for (int i = 0; i < lines; i++)
        {
            if (_lines.TryGetValue(_due[i], out Line? line))
            {
                line.IsDue = false;
            }
        }

        _due.RemoveRange(0, lines);
    }

    /// <summary>Takes the client that has been due for longest; <see cref="Wake"/> puts it at the end again.</summary>
    public bool TryTakeDue([NotNullWhen(true)] out ReplySink? sink)
    {
        sink = _due.Count > 0 ? _due[0] : null;
        Looked(Math.Min(1, _due.Count));
        return sink is not null;
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
            if (!line.HasGrown && _spare.Count < SpareMax)
            {
                _spare.Push(line);
            }
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

    private void MakeDue(ReplySink sink, Line line)
    {
        if (!line.IsDue)
        {
            line.IsDue = true;
            _due.Add(sink);
        }
    }

    private sealed class Line
    {
        public Ring<ParkedRead> Reads { get; } = new(LinePlaces);

        public int AnswerBytes { get; set; }

        /// <summary>The line is due.</summary>
        public bool IsDue { get; set; }

        public bool HasGrown { get; set; }
    }
}

/// <summary>
/// A confirmed read whose answer has to wait until its client has taken earlier ones. It lies in a batch, which is held
/// for it, or, when its answer was held back before, in bytes of its own.
/// </summary>
/// <param name="Number">The request's number.</param>
/// <param name="Batch">The batch; null: <paramref name="Command"/>.</param>
/// <param name="Operation">Its place in the batch.</param>
/// <param name="Command">The encoded read.</param>
internal readonly record struct ParkedRead(RequestTag Number, ClientBatch? Batch, int Operation, byte[]? Command)
{
    /// <summary>The encoded read.</summary>
    public ReadOnlySpan<byte> Bytes => Batch is { } batch ? batch.Command(batch.Operations[Operation]) : Command;
}
