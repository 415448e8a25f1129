using Kahuna.Tests.Linearizability;

namespace Kahuna.Tests.WatchStreams;

/// <summary>
/// Checks the watches of a history against its writes (docs/histories.md). Takes time in proportion to the events and
/// to the writes of the watched keys. Stateless; any thread.
/// </summary>
internal static class WatchStreamChecker
{
    /// <summary>What is wrong: a watch was not told every change behind its start, once and in order.</summary>
    /// <exception cref="HistoryException">A watch begins at a position that the history does not have.</exception>
    public static List<WatchFinding> Check(
        IReadOnlyList<HistoryOperation> operations, IReadOnlyList<WatchStream> streams, CheckerOptions options)
    {
        WrittenChanges changes = new(operations);
        ToldChanges told = new(streams, options);
        Dictionary<string, StartPoint> positions = PositionsOfReads(operations);
        List<WatchFinding> findings = [];

        // A watch may begin where another one has been.
        List<WatchStream> waiting = [.. streams];
        while (waiting.Count > 0)
        {
            int before = waiting.Count;
            foreach (WatchStream stream in streams.Where(waiting.Contains))
            {
                if (StartOf(stream, positions) is { } start)
                {
                    StreamWalk walk = new(stream, changes, told, start);
                    walk.Run();
                    findings.AddRange(walk.Findings);
                    foreach ((string name, StartPoint point) in walk.Positions)
                    {
                        if (!positions.TryAdd(name, point))
                        {
                            throw new HistoryException(stream.Line, $"the position {name} is there twice");
                        }
                    }

                    waiting.Remove(stream);
                }
            }

            if (waiting.Count == before)
            {
                throw new HistoryException(
                    waiting[0].Line, $"the position {waiting[0].From} is of no read and of no event");
            }
        }

        findings.AddRange(told.Check(changes));
        return findings;
    }

    private static StartPoint? StartOf(WatchStream stream, Dictionary<string, StartPoint> positions) =>
        stream.From switch
        {
            // It has begun with its first event, at the latest.
            WatchStream.Now => new StartPoint
            {
                NotBeforeNs = stream.CallNs,
                CompleteFromNs = stream.Events is [{ AtNs: var begunNs }, ..] ? begunNs : long.MaxValue,
            },
            WatchStream.State => new StartPoint { CompleteFromNs = long.MaxValue },
            _ => positions.GetValueOrDefault(stream.From),
        };

    /// <summary>
    /// A read names the revision of its key at its position, which is of a moment between call and return.
    /// </summary>
    private static Dictionary<string, StartPoint> PositionsOfReads(IReadOnlyList<HistoryOperation> operations)
    {
        Dictionary<string, StartPoint> positions = new(StringComparer.Ordinal);
        foreach (HistoryOperation read in operations)
        {
            if (read is not { Result.Position: { } name, ReturnNs: { } returnNs })
            {
                continue;
            }

            Dictionary<string, long> revisions = new(StringComparer.Ordinal);
            if (read.Result.Revision is { } revision)
            {
                revisions[read.Key] = revision;
            }

            StartPoint point = new()
            {
                Revisions = revisions,
                NotBeforeNs = read.CallNs,
                CompleteFromNs = returnNs,
            };
            if (!positions.TryAdd(name, point))
            {
                throw new HistoryException(read.Line, $"the position {name} is there twice");
            }
        }

        return positions;
    }
}
