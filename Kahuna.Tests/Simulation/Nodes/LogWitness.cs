using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;

namespace Kahuna.Tests.Simulation.Nodes;

/// <summary>
/// What a node's log was told and what it said is on stable storage, over all lives of the node: the measure for what
/// it finds after a restart, and for what the rules count as durable. Owned by its node.
/// </summary>
internal sealed class LogWitness(GroupLayout layout)
{
    private readonly GroupImage[] _memory = Fresh(layout);
    private readonly GroupImage[] _durable = Fresh(layout);
    private readonly Dictionary<int, Queue<(ulong Batch, List<LogOperation> Operations)>> _submitted = [];

    /// <summary>Counts up with every change of what it was told or has on stable storage.</summary>
    public long Version { get; private set; }

    /// <summary>What the node has written of the group in a slot, synced or not.</summary>
    public GroupImage Memory(int slot) => _memory[slot];

    /// <summary>What the node has on stable storage of the group in a slot.</summary>
    public GroupImage Durable(int slot) => _durable[slot];

    /// <summary>Everything that a log can hold: all groups, and behind them what belongs to the node itself.</summary>
    public static IEnumerable<GroupId> All(GroupLayout layout) =>
        Enumerable.Range(0, layout.Count).Select(layout.GroupOf).Append(GroupId.Node);

    public void Told(LogOperation operation)
    {
        Version++;
        operation.ApplyTo(_memory[IndexOf(operation.Group)]);
    }

    public void Submitted(int loop, ulong batch, List<LogOperation> operations)
    {
        if (!_submitted.TryGetValue(loop, out var queue))
        {
            _submitted[loop] = queue = new();
        }

        queue.Enqueue((batch, operations));
    }

    public void Persisted(int loop, ulong batch)
    {
        while (_submitted.TryGetValue(loop, out var queue) && queue.TryPeek(out var first) && first.Batch <= batch)
        {
            Version++;
            Apply(queue.Dequeue().Operations, _durable);
        }
    }

    /// <summary>
    /// After a restart: what was found must be what was durable, and of what was submitted after it the first part, of
    /// each loop. Returns what is wrong, or null; what was found counts from now on.
    /// </summary>
    public string? Recovered(GroupImage[] found, int loops)
    {
        string? wrong = null;
        for (int loop = 0; loop < loops && wrong is null; loop++)
        {
            wrong = CheckLoop(loop, loops, found);
        }

        _submitted.Clear();
        Version++;
        for (int i = 0; i < found.Length; i++)
        {
            _memory[i] = found[i];
            _durable[i] = found[i].Copy();
        }

        return wrong;
    }

    /// <summary>The disk is gone.</summary>
    public void Forget() => Recovered(Fresh(layout), 0);

    private static GroupImage[] Fresh(GroupLayout layout) =>
        [.. Enumerable.Range(0, layout.Count + 1).Select(_ => new GroupImage())];

    private int IndexOf(GroupId group) => group == GroupId.Node ? layout.Count : layout.IndexOf(group);

    /// <summary>The node's own record is written by the loop of the meta group.</summary>
    private int LoopOf(int index, int loops) => index == layout.Count ? 0 : layout.LoopOf(index, loops);

    private void Apply(List<LogOperation> operations, GroupImage[] images)
    {
        foreach (LogOperation operation in operations)
        {
            operation.ApplyTo(images[IndexOf(operation.Group)]);
        }
    }

    private string? CheckLoop(int loop, int loops, GroupImage[] found)
    {
        // Nearly always what was found is what was durable: only what is to be changed is copied.
        GroupImage[] images = _durable;
        var rest = _submitted.TryGetValue(loop, out var queue) ? queue : new();
        string? first = null;
        while (true)
        {
            string? wrong = null;
            for (int index = 0; index < found.Length && wrong is null; index++)
            {
                if (LoopOf(index, loops) == loop)
                {
                    wrong = images[index].Differs(found[index]) is { } difference
                        ? $"{(index == layout.Count ? "the node" : layout.GroupOf(index).Name)}: {difference}"
                        : null;
                }
            }

            if (wrong is null)
            {
                return null;
            }

            first ??= wrong;
            if (!rest.TryDequeue(out var next))
            {
                return $"{first}, also not with any of what was submitted later";
            }

            images = images == _durable ? [.. _durable.Select(static image => image.Copy())] : images;
            Apply(next.Operations, images);
        }
    }
}
