namespace Kahuna.Tests.Simulation.Engine;

/// <summary>
/// Everything that happens in a run, in order: counted, hashed, the latest kept, and written out when somebody wants to
/// read it. Not thread-safe.
/// </summary>
internal sealed class EventLog(TextWriter? trace)
{
    private const int Kept = 60;

    // Apart from each other: a hundred calls and streams that end at the same time must not push out why they do.
    private readonly Queue<LoggedEvent> _ofNodes = new(Kept);
    private readonly Queue<LoggedEvent> _ofCallers = new(Kept);

    public long Count { get; private set; }

    /// <summary>Somebody reads it: words may be added that cost time.</summary>
    public bool IsTraced => trace is not null;

    /// <summary>Of all events, in order.</summary>
    public ulong Hash { get; private set; } = 0xCBF29CE484222325;

    /// <summary>Number of events of each kind.</summary>
    public long[] Kinds { get; } = new long[Enum.GetValues<SimEvent>().Length];

    public void Add(long atNs, long step, SimEvent kind, int node, long a = 0, long b = 0, string? words = null)
    {
        ulong hash = Hash;
        hash = (hash ^ (ulong)atNs) * 0x9E3779B97F4A7C15;
        hash = (hash ^ (hash >> 29) ^ ((ulong)kind << 16) ^ (uint)node) * 0xBF58476D1CE4E5B9;
        Hash = (hash ^ (hash >> 32) ^ (ulong)a ^ ((ulong)b << 32)) * 0x94D049BB133111EB;
        Kinds[(int)kind]++;
        Count++;
        LoggedEvent entry = new(Count, atNs, step, kind, node, a, b, words);
        if (LoggedEvent.IsTold(kind))
        {
            Keep(LoggedEvent.IsOfCallers(kind) ? _ofCallers : _ofNodes, entry);
        }

        trace?.WriteLine(entry.ToString());
    }

    /// <summary>
    /// The latest events that tell what happened, of nodes and of callers, as sentences, the oldest first.
    /// </summary>
    public IEnumerable<string> Story() =>
        _ofNodes.Concat(_ofCallers).OrderBy(static entry => entry.Order).Select(static entry => entry.ToSentence());

    private static void Keep(Queue<LoggedEvent> queue, LoggedEvent entry)
    {
        if (queue.Count == Kept)
        {
            queue.Dequeue();
        }

        queue.Enqueue(entry);
    }
}
