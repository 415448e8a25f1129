namespace Kahuna.Tests.Traces;

/// <summary>The events of several traces in the order of their times. Stateless.</summary>
internal static class TraceMerge
{
    public static IEnumerable<TraceEvent> Merge(IReadOnlyList<IEnumerable<TraceEvent>> traces)
    {
        PriorityQueue<IEnumerator<TraceEvent>, (long, int)> next = new();
        try
        {
            for (int i = 0; i < traces.Count; i++)
            {
                Enqueue(traces[i].GetEnumerator(), i);
            }

            while (next.TryDequeue(out IEnumerator<TraceEvent>? earliest, out (long, int Trace) at))
            {
                yield return earliest.Current;
                Enqueue(earliest, at.Trace);
            }
        }
        finally
        {
            foreach ((IEnumerator<TraceEvent> open, _) in next.UnorderedItems)
            {
                open.Dispose();
            }
        }

        void Enqueue(IEnumerator<TraceEvent> trace, int number)
        {
            if (trace.MoveNext())
            {
                next.Enqueue(trace, (trace.Current.TimeNs, number));
            }
            else
            {
                trace.Dispose();
            }
        }
    }
}
