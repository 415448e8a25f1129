using Kahuna.Server.Partitions.Groups;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Partitions.Loops;

/// <summary>
/// The groups of a loop, and which of them have work in this turn. A group that breaks a rule stops, and only it
/// (<see cref="GroupGuard"/>). Owned by one loop; not thread-safe.
/// </summary>
internal sealed class LoopGroups
{
    private readonly GroupLayout _layout;
    private readonly GroupGuard _guard;
    private readonly Group?[] _bySlot;
    private readonly List<Group> _owned = [];

    /// <param name="layout">Which groups the node has.</param>
    /// <param name="guard">Stops a group that breaks a rule.</param>
    public LoopGroups(GroupLayout layout, GroupGuard guard)
    {
        _layout = layout;
        _guard = guard;
        _bySlot = new Group?[layout.Slots];
    }

    /// <summary>The groups, by slot.</summary>
    public IReadOnlyList<Group> Owned => _owned;

    /// <summary>Groups with work in this turn, each once.</summary>
    public List<Group> Dirty { get; } = [];

    /// <summary>Every group has answered what it accepted and handed leadership over.</summary>
    public bool AreDrained => _owned.TrueForAll(static group => group.IsDrained);

    /// <summary>Builds and starts the groups of the loop with this number.</summary>
    public void Build(int loop, LoopOptions options, GroupBuilder builder)
    {
        for (int slot = 0; slot < _layout.Slots; slot++)
        {
            if (_layout.LoopOf(slot, options.Loops) == loop)
            {
                Group group = builder.Build(slot);
                InvariantException.Require(_bySlot[slot] is null && group.Slot == slot, "a slot has one group");
                _bySlot[slot] = group;
                _owned.Add(group);
                _guard.Start(group);
            }
        }
    }

    /// <summary>Answers everything that still waits.</summary>
    public void Close() => _owned.ForEach(static group => group.Requests.Close());

    /// <summary>The group in a slot, if it is here.</summary>
    public Group? InSlot(int slot) => _bySlot[slot];

    /// <summary>The group, if it is here.</summary>
    public Group? Find(GroupId id) => _layout.SlotOf(id) is var slot and >= 0 ? _bySlot[slot] : null;

    /// <summary>The group has work in this turn.</summary>
    public void MarkDirty(Group group)
    {
        if (!group.Dirty && !group.Failed)
        {
            group.Dirty = true;
            Dirty.Add(group);
        }
    }

    /// <summary>Groups whose proposals wait have work in this turn.</summary>
    public void MarkQueued()
    {
        foreach (Group group in _owned)
        {
            if (group.Requests.HasQueued)
            {
                MarkDirty(group);
            }
        }
    }

    /// <summary>Does something with a group, if it is here.</summary>
    public void Do<T>(GroupId id, Action<Group, T> action, T argument)
    {
        if (Find(id) is { } group)
        {
            Do(group, action, argument);
        }
    }

    /// <summary>Does something with a group that has not stopped; its turn comes in any case.</summary>
    public void Do<T>(Group group, Action<Group, T> action, T argument)
    {
        _guard.Do(group, action, argument);
        MarkDirty(group);
    }

    /// <summary>Does something with each group that has not stopped; its turn comes in any case.</summary>
    public void All<T>(Action<Group, T> action, T argument)
    {
        foreach (Group group in _owned)
        {
            Do(group, action, argument);
        }
    }
}
