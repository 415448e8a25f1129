using System.Text.Json;

namespace Kahuna.Tests.Traces;

/// <summary>
/// Reads a trace line by line (docs/simulation.md). A line that cannot be read throws <see cref="TraceException"/>,
/// unless it is the last of a run: a killed process leaves a torn one behind. Owned by one reader.
/// </summary>
internal sealed class TraceReader(TextReader source, string file)
{
    private static readonly Dictionary<string, TraceEventKind> s_kinds = Enum.GetValues<TraceEventKind>()
        .ToDictionary(static kind => char.ToLowerInvariant(kind.ToString()[0]) + kind.ToString()[1..]);

    private TraceEvent? _start;
    private TraceEvent? _latest;
    private long _line;

    /// <summary>Torn lines so far.</summary>
    public int Torn { get; private set; }

    /// <summary>All events, in the order of the file, which is that of their times.</summary>
    public IEnumerable<TraceEvent> Read()
    {
        (TracePlace Place, string Sentence)? unreadable = null;
        while (source.ReadLine() is { } line)
        {
            TracePlace place = new(file, ++_line);
            TraceEvent? read = TryParse(line, place, out string sentence);
            if (unreadable is { } before && read is not { Kind: TraceEventKind.Start })
            {
                throw new TraceException(before.Place, before.Sentence);
            }

            unreadable = read is null ? (place, sentence) : null;
            if (read is not null)
            {
                CheckRun(read);
                yield return read;
            }
            else
            {
                Torn++;
            }
        }
    }

    private static TraceEvent? TryParse(string line, TracePlace place, out string sentence)
    {
        sentence = string.Empty;
        JsonDocument document;
        try
        {
            document = JsonDocument.Parse(line);
        }
        catch (JsonException)
        {
            sentence = "is no JSON, and not the last line of a run";
            return null;
        }

        using (document)
        {
            return document.RootElement.ValueKind == JsonValueKind.Object
                ? Parse(new TraceObject(document.RootElement, place), place)
                : throw new TraceException(place, "is no JSON object");
        }
    }

    private static TraceEvent Parse(TraceObject line, TracePlace place)
    {
        string name = line.Text("event");
        TraceEventKind kind = s_kinds.TryGetValue(name, out TraceEventKind known)
            ? known
            : throw new TraceException(place, $"event is {name}; it must be one of {string.Join(", ", s_kinds.Keys)}");
        TraceEvent common = new()
        {
            Place = place,
            Kind = kind,
            TimeNs = line.Whole("t"),
            Node = line.Number("node"),
            Run = line.Text("run"),
            Group = kind == TraceEventKind.Start ? 0 : (uint)line.Number("group"),
        };
        return kind switch
        {
            TraceEventKind.Start => common with { Voters = line.Number("voters"), Directory = line.Text("directory") },
            TraceEventKind.Recover => common with
            {
                LogStart = line.Index("start"),
                LogStartTerm = line.Index("startTerm"),
                Last = line.Index("last"),
                Runs = line.Runs("terms"),
                Term = line.Index("term"),
                Vote = line.Number("vote"),
                Commit = line.Index("commit"),
            },
            TraceEventKind.Replay => common with { First = line.Index("first"), Entries = line.Entries("entries") },
            TraceEventKind.State =>
                common with { Index = line.Index("index"), Term = line.Index("term"), Digests = [line.Hex("digest")] },
            TraceEventKind.BecomeLeader =>
                common with { Term = line.Index("term"), Last = line.Index("last"), Commit = line.Index("commit") },
            TraceEventKind.Vote => common with { Term = line.Index("term"), Vote = line.Number("candidate") },
            TraceEventKind.Append => common with
            {
                Batch = line.Index("batch"),
                First = line.Index("first"),
                Entries = line.Entries("entries"),
            },
            TraceEventKind.Restart =>
                common with { Batch = line.Index("batch"), Index = line.Index("index"), Term = line.Index("term") },
            TraceEventKind.Persisted => common with
            {
                Batch = line.Index("batch"),
                Index = line.Index("index"),
                IndexTerm = line.Index("indexTerm"),
                Term = line.Index("term"),
                Vote = line.Number("vote"),
            },
            TraceEventKind.Commit => common with { Index = line.Index("index"), Term = line.Index("term") },
            TraceEventKind.Apply => common with { First = line.Index("first"), Digests = line.HexList("digests") },
            _ => common with { Index = line.Index("index"), Term = line.Index("term"), Writes = line.Whole("writes") },
        };
    }

    private void CheckRun(TraceEvent read)
    {
        if (read.Kind == TraceEventKind.Start)
        {
            _start = read;
        }
        else if (_start is null)
        {
            throw new TraceException(read.Place, "comes before any start of a node; the trace's beginning is missing");
        }
        else if (read.Run != _start.Run || read.Node != _start.Node)
        {
            throw new TraceException(
                read.Place,
                $"belongs to run {read.Run} of node {read.Node}, after the start of run {_start.Run} of node "
                    + $"{_start.Node}; two processes write to this file");
        }

        if (_latest is not null && read.TimeNs < _latest.TimeNs)
        {
            throw new TraceException(
                read.Place,
                "is earlier than the line before; runs before and after a restart of the "
                    + "machine cannot be checked together");
        }

        _latest = read;
    }
}
