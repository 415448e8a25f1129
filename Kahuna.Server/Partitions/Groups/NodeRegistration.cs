using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.State;
using Kahuna.Server.State.Meta;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.Partitions.Groups;

/// <summary>
/// What a node does for and with the meta group besides replicating it: gives this start a number that is on stable
/// storage, has it recorded, records the cluster's configuration when it leads, and passes the records on. Owned by the
/// meta group's partition; not thread-safe.
/// </summary>
internal sealed class NodeRegistration(LoopOptions options, LoopPorts ports, MetaPublisher publisher)
{
    private readonly VoterSet _voters = new(options.Voters);

    // Proposed by this leader and not applied yet. Nodes repeat a request until it is recorded. Without this set each
    // repeat would be one more log entry.
    private readonly HashSet<MetaCommand> _proposed = [];
    private ulong _incarnation = ports.Log.Recovered(GroupId.Node).HardState.Term.Value;
    private bool _isStored;
    private bool _isChanged = true;
    private FeatureLevel _level;
    private bool _saidHold;
    private int _askTicks = options.AskMetaTicks;

    /// <summary>Gives this start the next number; the caller stores it.</summary>
    public HardState NextStart(ulong atLeast = 0)
    {
        _incarnation = Math.Max(_incarnation, atLeast) + 1;
        _isStored = false;
        return new HardState(new Term(_incarnation), default, default);
    }

    /// <summary>The number is on stable storage.</summary>
    public void Stored() => _isStored = true;

    /// <summary>False when this leader has proposed the same already and it is not applied yet.</summary>
    public bool MayPropose(MetaCommand command) => _proposed.Add(SameAs(command));

    /// <summary>
    /// Leadership or its term has ended, or what waits was dropped. Repeats are proposed again, since nobody knows what
    /// became of the proposals.
    /// </summary>
    public void LoseProposed() => _proposed.Clear();

    /// <summary>A command was applied.</summary>
    public void Applied(in Command command)
    {
        if (_proposed.Count > 0 && MetaCommand.Read(in command) is { } applied)
        {
            _proposed.Remove(SameAs(applied));
        }

        Changed();
    }

    /// <summary>The records have changed.</summary>
    public void Changed() => _isChanged = true;

    /// <summary>Passes the records on when they have changed.</summary>
    public void Publish(StateMachine state)
    {
        if (_isChanged)
        {
            _isChanged = false;
            MetaView view = state.Meta.View();
            CheckConfiguration(view);
            if (view.Slots is { } slots)
            {
                ports.Leadership.SlotsChanged(slots);
            }

            ports.Leadership.AccessChanged(view.Access);
            if (MayKnow(view.FeatureLevel))
            {
                publisher.Publish(view);
            }
        }
    }

    /// <summary>
    /// The command without its lists, so that equal commands compare equal. The voters of Configure are the same on all
    /// nodes. Of two moves of different slots in one version, the second is dropped, and would have been refused.
    /// </summary>
    private static MetaCommand SameAs(MetaCommand command) => command with
    {
        Voters = [],
        Slots = [],
        Rows = default,
    };

    /// <summary>
    /// What the cluster has recorded of itself is what this node was started for; otherwise it must not go on.
    /// </summary>
    private void CheckConfiguration(MetaView view)
    {
        if (view.Voters.Count == 0)
        {
            return;
        }

        VoterSet recorded = new(view.Voters);
        if (!recorded.Equals(_voters) || view.Partitions != ports.Partitions)
        {
            ports.Leadership.StorageFailed(new StorageException(
                $"The cluster has recorded that its nodes are {recorded}, with {view.Partitions} partition(s), but "
                    + $"this node is started for the nodes {_voters}, with {ports.Partitions} partition(s). "
                    + $"Correct --peers or --partitions."));
        }
    }

    /// <summary>
    /// False for a feature level that this build does not support: the node must not go on, and nothing here learns the
    /// level.
    /// </summary>
    private bool MayKnow(FeatureLevel level)
    {
        FeatureRange supported = options.StateLimits.Features;
        if (!supported.Contains(level))
        {
            ports.Leadership.StorageFailed(
                new FeatureLevelException(level, supported, "its records in the meta group"));
            return false;
        }

        if (level > _level)
        {
            _level = level;
            ports.Report($"The cluster's feature level is {level}.");
        }

        if (options.FeatureLevelMax < level && !_saidHold)
        {
            _saidHold = true;
            ports.Report(
                $"--feature-level-max {options.FeatureLevelMax} has no effect: the cluster's feature level is {level}, "
                    + $"and a level is never lowered.");
        }

        return true;
    }

    /// <summary>
    /// Proposes the highest feature level that every voter supports, when it is above the present one. The command
    /// looks once more when it is applied (<see cref="MetaTable"/>).
    /// </summary>
    private void RaiseLevel(MetaView view, Action<ByteBuffer> propose)
    {
        FeatureLevel level = options.FeatureLevelMax ?? options.StateLimits.Features.Max;
        for (int i = 0; i < view.Voters.Count; i++)
        {
            FeatureLevel supported = view.Node(view.Voters[i]).Features.Max;
            level = supported < level ? supported : level;
        }

        if (level > view.FeatureLevel && IsSupportedByAll(view, level))
        {
            ByteBuffer bytes = ByteBuffer.Rent();
            new MetaCommand(CommandKind.RaiseFeatureLevel)
            {
                Number = (ulong)level.Value,
                PresentLevel = (ulong)view.FeatureLevel.Value,
            }.Write(bytes);
            propose(bytes);
            bytes.Return();
        }
    }

    private static bool IsSupportedByAll(MetaView view, FeatureLevel level)
    {
        for (int i = 0; i < view.Voters.Count; i++)
        {
            if (!view.Node(view.Voters[i]).Features.Contains(level))
            {
                return false;
            }
        }

        return true;
    }

    /// <summary>
    /// A tick. Returns a hard state to store when this start needs a higher number: the records know a later start of
    /// this node, from a directory that was lost.
    /// </summary>
    public HardState? Tick(bool leads, Action<ByteBuffer> propose)
    {
        MetaView view = publisher.Latest;
        if (++_askTicks < options.AskMetaTicks)
        {
            return null;
        }

        _askTicks = 0;
        if (leads && view.Voters.Count == 0)
        {
            ByteBuffer bytes = ByteBuffer.Rent();
            new MetaCommand(CommandKind.Configure)
            {
                Number = (ulong)ports.Partitions,
                Voters = _voters.Ids
            }.Write(bytes);
            propose(bytes);
            bytes.Return();
        }

        if (leads && view.Voters.Count > 0)
        {
            RaiseLevel(view, propose);
        }

        MetaNode self = view.Node(options.Self);
        if (self.Incarnation > 0 && self.Nonce == options.Seed)
        {
            return null;
        }

        if (self.Incarnation >= _incarnation)
        {
            return NextStart(self.Incarnation);
        }

        if (_isStored)
        {
            publisher.Ask(new MetaCommand(CommandKind.RegisterNode)
            {
                Node = options.Self,
                Incarnation = _incarnation,
                Nonce = options.Seed,
                Features = options.StateLimits.Features,
            });
        }

        return null;
    }
}
