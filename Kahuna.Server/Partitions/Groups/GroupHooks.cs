using Kahuna.Server.State;

namespace Kahuna.Server.Partitions.Groups;

/// <summary>
/// What a group does besides replicating its state; for most groups that is nothing. Owned by one <see cref="Group"/>;
/// not thread-safe.
/// </summary>
internal class GroupHooks
{
    /// <summary>The hooks of a group that does nothing besides. Stateless.</summary>
    public static GroupHooks None { get; } = new();

    /// <summary>The group is loaded.</summary>
    public virtual void Started(Group group, StateMachine state)
    {
    }

    /// <summary>A hard state that stands alone is on stable storage.</summary>
    public virtual void Saved()
    {
    }

    /// <summary>A tick of the node's clock.</summary>
    public virtual void Tick(Group group)
    {
    }

    /// <summary>The group is to record this command; without a leader it is lost.</summary>
    public virtual void Record(Group group, ReadOnlySpan<byte> command)
    {
    }

    /// <summary>The commands of an entry were applied.</summary>
    /// <param name="items">The encoded commands, each after its length.</param>
    public virtual void Applied(ReadOnlySpan<byte> items)
    {
    }

    /// <summary>Another state has taken the place of the group's.</summary>
    public virtual void Installed()
    {
    }

    /// <summary>What this leader had proposed is lost, or nobody knows what became of it.</summary>
    public virtual void LoseProposed()
    {
    }

    /// <summary>The turn has applied what was due.</summary>
    public virtual void Publish(StateMachine state)
    {
    }
}
