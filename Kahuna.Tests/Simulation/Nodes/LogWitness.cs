namespace Kahuna.Tests.Simulation.Nodes;

/// <summary>
/// What a node's log was told and what it said is on stable storage, over all lives of the node: the measure for what it finds after a restart, and for what the rules
/// count as durable. Owned by its node.
/// </summary>
internal sealed class LogWitness(int groups)
{
    private readonly GroupImage[] _memory = Fresh(groups);
    private readonly GroupImage[] _durable = Fresh(groups);
    private readonly Dictionary<int, Queue<(ulong Batch, List<LogOperation> Operations)>> _submitted = [];

    /// <summary>What the node has written of a group, synced or not.</summary>
    public GroupImage Memory(int group) => _memory[group];

    /// <summary>What the node has on stable storage of a group.</summary>
    public GroupImage Durable(int group) => _durable[group];

    public void Told(LogOperation operation) => operation.ApplyTo(_memory[(int)operation.Group.Value - 1]);

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
            Apply(queue.Dequeue().Operations, _durable);
        }
    }

    /// <summary>
    /// After a restart: what was found must be what was durable, and of what was submitted after it the first part, of each loop. Returns what is wrong, or null; what was
    /// found counts from now on.
    /// </summary>
    public string? Recovered(GroupImage[] found, int loops)
    {
        string? wrong = null;
        for (int loop = 0; loop < loops && wrong is null; loop++)
        {
            wrong = CheckLoop(loop, loops, found);
        }

        _submitted.Clear();
        for (int i = 0; i < groups; i++)
        {
            _memory[i] = found[i];
            _durable[i] = found[i].Copy();
        }

        return wrong;
    }

    /// <summary>The disk is gone.</summary>
    public void Forget() => Recovered(Fresh(groups), 0);

    private static GroupImage[] Fresh(int groups) => [.. Enumerable.Range(0, groups).Select(_ => new GroupImage())];

    private static void Apply(List<LogOperation> operations, GroupImage[] images)
    {
        foreach (LogOperation operation in operations)
        {
            operation.ApplyTo(images[(int)operation.Group.Value - 1]);
        }
    }

    private string? CheckLoop(int loop, int loops, GroupImage[] found)
    {
        GroupImage[] images = [.. _durable.Select(image => image.Copy())];
        var rest = _submitted.TryGetValue(loop, out var queue) ? queue : new();
        string? first = null;
        while (true)
        {
            string? wrong = null;
            for (int group = loop; group < groups && wrong is null; group += loops)
            {
                wrong = images[group].Differs(found[group]) is { } difference ? $"group {group + 1}: {difference}" : null;
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

            Apply(next.Operations, images);
        }
    }
}
