using Kahuna.Tests.Linearizability;

namespace Kahuna.Tests.Serializability;

/// <summary>
/// Which transactions must come before which others. Nodes are transactions, and moments in real time between them: a
/// transaction that returned before a moment comes before all that were called after it. Owned by one check.
/// </summary>
internal sealed class DependencyGraph
{
    private readonly AppendTransaction[] _transactions;
    private readonly Dictionary<AppendTransaction, int> _numbers = new(ReferenceEqualityComparer.Instance);
    private readonly List<List<(int To, Why Why)>> _edges = [];

    public DependencyGraph(AppendHistory history)
    {
        _transactions = history.Committed;
        foreach (AppendTransaction transaction in _transactions)
        {
            _numbers.Add(transaction, _edges.Count);
            _edges.Add([]);
        }

        AddVersions(history);
        AddReads(history);
        AddTimes();
    }

    /// <summary>Why one transaction comes before another. Not stored.</summary>
    private enum Why
    {
        /// <summary>It appended the version before.</summary>
        Writes,

        /// <summary>The other one read what it appended.</summary>
        IsRead,

        /// <summary>It did not read what the other one appended next.</summary>
        Misses,

        /// <summary>It returned before the other one was called.</summary>
        Time,
    }

    /// <summary>The shortest cycle; null when there is none.</summary>
    public SerializabilityFinding? ShortestCycle()
    {
        int[] components = Components();
        List<(int From, Why Why)>? shortest = null;
        foreach (IGrouping<int, int> component in Enumerable.Range(0, _transactions.Length)
            .GroupBy(node => components[node])
            .Where(static component => component.Skip(1).Any()))
        {
            foreach (int start in component)
            {
                List<(int From, Why Why)>? cycle = CycleFrom(start, components);
                if (cycle is not null && (shortest is null || cycle.Count < shortest.Count))
                {
                    shortest = cycle;
                }
            }
        }

        return shortest is null ? null : Describe(shortest);
    }

    private SerializabilityFinding Describe(List<(int From, Why Why)> cycle)
    {
        int misses = cycle.Count(static step => step.Why == Why.Misses);
        string name = misses switch
        {
            0 when cycle.All(static step => step.Why is Why.Writes or Why.Time) => "write cycle (G0)",
            0 => "cyclic information flow (G1c)",
            1 => "single anti-dependency cycle (G-single)",
            _ => "anti-dependency cycle (G2)",
        };
        name += cycle.Exists(static step => step.Why == Why.Time) ? ", with real time" : "";
        IEnumerable<string> steps = cycle.Select((step, i) =>
            $"{i + 1} {Verb(step.Why)} {((i + 1) % cycle.Count) + 1}");
        return new SerializabilityFinding(
            name,
            $"each of these comes before the next, and the last before the first: {string.Join("; ", steps)}",
            [.. cycle.Select(step => _transactions[step.From])]);
    }

    private static string Verb(Why why) => why switch
    {
        Why.Writes => "appended before",
        Why.IsRead => "was read by",
        Why.Misses => "did not see",
        _ => "returned before the call of",
    };

    private void AddVersions(AppendHistory history)
    {
        foreach ((string key, long[] order) in history.Orders)
        {
            for (int i = 1; i < order.Length; i++)
            {
                Add(history.WriterOf(key, order[i - 1]), history.WriterOf(key, order[i]), Why.Writes);
            }
        }

        foreach (AppendTransaction writer in _transactions)
        {
            foreach (AppendStep step in Unread(history, writer))
            {
                if (history.Orders.GetValueOrDefault(step.Key, []) is [.., var last])
                {
                    Add(history.WriterOf(step.Key, last), writer, Why.Writes);
                }
            }
        }
    }

    private void AddReads(AppendHistory history)
    {
        ILookup<string, AppendTransaction> unread = _transactions
            .SelectMany(writer => Unread(history, writer).Select(step => (step.Key, writer)))
            .ToLookup(static pair => pair.Key, static pair => pair.writer, StringComparer.Ordinal);
        foreach (AppendTransaction reader in _transactions.Where(static each => each.Outcome == HistoryOutcome.Ok))
        {
            foreach ((string key, long[] read) in reader.FirstReads())
            {
                long[] order = history.Orders.GetValueOrDefault(key, []);
                if (read is [.., var last])
                {
                    Add(history.WriterOf(key, last), reader, Why.IsRead);
                }

                if (read.Length < order.Length)
                {
                    Add(reader, history.WriterOf(key, order[read.Length]), Why.Misses);
                    continue;
                }

                foreach (AppendTransaction writer in unread[key])
                {
                    Add(reader, writer, Why.Misses);
                }
            }
        }
    }

    /// <summary>What a transaction appended and nobody has read: it comes behind everything that was read.</summary>
    private static IEnumerable<AppendStep> Unread(AppendHistory history, AppendTransaction writer) =>
        writer.Steps.Where(step => step.Appended is { } value
            && !history.Orders.GetValueOrDefault(step.Key, []).Contains(value));

    /// <summary>
    /// A chain of moments, one behind each return: as many edges as transactions, instead of one for each two of them.
    /// </summary>
    private void AddTimes()
    {
        (long Ns, int Node)[] returns =
        [
            .. _transactions
                .Where(static each => each is { Outcome: HistoryOutcome.Ok, ReturnNs: not null })
                .Select(each => (each.ReturnNs!.Value, _numbers[each]))
                .Order(),
        ];
        int first = _edges.Count;
        for (int i = 0; i < returns.Length; i++)
        {
            _edges.Add([]);
            _edges[returns[i].Node].Add((first + i, Why.Time));
            if (i > 0)
            {
                _edges[first + i - 1].Add((first + i, Why.Time));
            }
        }

        long[] times = [.. returns.Select(static each => each.Ns)];
        foreach (AppendTransaction called in _transactions)
        {
            int before = Array.BinarySearch(times, called.CallNs);
            before = before < 0 ? ~before : before;
            while (before > 0 && times[before - 1] >= called.CallNs)
            {
                before--;
            }

            if (before > 0)
            {
                _edges[first + before - 1].Add((_numbers[called], Why.Time));
            }
        }
    }

    private void Add(AppendTransaction from, AppendTransaction to, Why why)
    {
        if (from != to)
        {
            _edges[_numbers[from]].Add((_numbers[to], why));
        }
    }

    /// <summary>The shortest way from a node back to itself, in transactions.</summary>
    private List<(int From, Why Why)>? CycleFrom(int start, int[] components)
    {
        Dictionary<int, (int From, Why Why)> ways = [];
        Queue<int> due = new([start]);
        while (due.TryDequeue(out int node))
        {
            foreach ((int to, Why why) in _edges[node])
            {
                if (components[to] != components[start] || (to != start && ways.ContainsKey(to)))
                {
                    continue;
                }

                if (to != start)
                {
                    ways.Add(to, (node, why));
                    due.Enqueue(to);
                    continue;
                }

                List<(int From, Why Why)> cycle = [(node, why)];
                for (int at = node; at != start; at = cycle[^1].From)
                {
                    cycle.Add(ways[at]);
                }

                cycle.Reverse();
                return [.. cycle.Where(step => step.From < _transactions.Length)];
            }
        }

        return null;
    }

    /// <summary>The strongly connected component of each node, after Tarjan; without recursion.</summary>
    private int[] Components()
    {
        int count = _edges.Count;
        int[] index = new int[count];
        int[] low = new int[count];
        int[] component = new int[count];
        Array.Fill(component, -1);
        Stack<int> open = new();
        Stack<(int Node, int Edge)> path = new();
        int next = 0;
        for (int root = 0; root < count; root++)
        {
            if (index[root] > 0)
            {
                continue;
            }

            path.Push((root, 0));
            while (path.TryPop(out (int Node, int Edge) at))
            {
                (int node, int edge) = at;
                if (edge == 0)
                {
                    index[node] = low[node] = ++next;
                    open.Push(node);
                }
                else
                {
                    low[node] = Math.Min(low[node], low[_edges[node][edge - 1].To]);
                }

                while (edge < _edges[node].Count && index[_edges[node][edge].To] > 0)
                {
                    int to = _edges[node][edge++].To;
                    low[node] = component[to] < 0 ? Math.Min(low[node], index[to]) : low[node];
                }

                if (edge < _edges[node].Count)
                {
                    path.Push((node, edge + 1));
                    path.Push((_edges[node][edge].To, 0));
                    continue;
                }

                if (low[node] == index[node])
                {
                    int member;
                    do
                    {
                        member = open.Pop();
                        component[member] = node;
                    }
                    while (member != node);
                }
            }
        }

        return component;
    }
}
