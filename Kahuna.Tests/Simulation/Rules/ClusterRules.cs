using System.Buffers.Binary;
using System.Text;
using Kahuna.Server.Partitions.Groups;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Partitions.Requests;
using Kahuna.Server.Partitions.Snapshots;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State.Meta;
using Kahuna.Tests.Simulation.Nodes;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Simulation.Rules;

/// <summary>
/// All rules that hold at every step of a run. They learn from what passes the ports of the shipped code, and throw
/// <see cref="RuleBrokenException"/>. Owned by one run.
/// </summary>
internal sealed class ClusterRules
{
    /// <summary>To load all of them would take a quarter of a run's time.</summary>
    private const int LoadedEvery = 8;

    private readonly SimConfig _config;
    private readonly GroupLayout _layout;
    private readonly GroupRules?[] _groups;
    private readonly BeliefRules?[] _beliefs;
    private readonly VolatileRules?[] _volatiles;
    private readonly HolderRules _holders;
    private readonly PlaceRules _places;
    private readonly Dictionary<string, List<(int Group, ulong Index, ulong Term)>> _values = [];

    public ClusterRules(SimConfig config, IReadOnlyList<SimNode> nodes)
    {
        _config = config;
        _layout = config.Layout;
        _groups = new GroupRules?[_layout.Count];
        _beliefs = new BeliefRules?[_layout.Count];
        _volatiles = new VolatileRules?[_layout.Count];
        _holders = new HolderRules(config, Break);
        _places = new PlaceRules(config, Break);
        Changes = new ChangeRules(config, Break);
        Transactions = new TransactionRules(Break);
        Levels = new LevelRules(config, nodes, Break);
        for (int slot = 0; slot < _layout.Count; slot++)
        {
            if (_layout.GroupOf(slot).IsEphemeral)
            {
                _volatiles[slot] = new VolatileRules(slot, config, nodes, Break);
            }
            else
            {
                _groups[slot] = new GroupRules(slot, config, nodes, Break);
                _beliefs[slot] = new BeliefRules(slot, nodes, Break);
            }
        }
    }

    public int LeaderChanges =>
        _groups.Sum(static group => group?.LeaderChanges ?? 0)
            + _volatiles.Sum(static group => group?.LeaderChanges ?? 0);

    /// <summary>Epochs of ephemeral groups that were closed.</summary>
    public int ClosedEpochs => _volatiles.Sum(static group => group?.Closed ?? 0);

    /// <summary>Votes of nodes that had been restored.</summary>
    public int Restored => _volatiles.Sum(static group => group?.Restored ?? 0);

    /// <summary>The rules of the ephemeral group of a partition.</summary>
    public VolatileRules Ephemeral(int partition) => _volatiles[_layout.IndexOf(partition, isEphemeral: true)]!;

    /// <summary>What the nodes tell of the keys' changes.</summary>
    public ChangeRules Changes { get; }

    /// <summary>What is said of transactions over several partitions.</summary>
    public TransactionRules Transactions { get; }

    /// <summary>The rules of the feature level.</summary>
    public LevelRules Levels { get; }

    public ulong Committed(int slot) => _groups[slot]?.Committed ?? _volatiles[slot]!.Committed;

    /// <summary>The first rule that was broken, also when shipped code has caught the exception.</summary>
    public RuleBrokenException? Broken { get; private set; }

    /// <summary>A rule is broken.</summary>
    [System.Diagnostics.CodeAnalysis.DoesNotReturn]
    public void Break(string rule, string words)
    {
        Broken ??= new RuleBrokenException(rule, words);
        throw Broken;
    }

    public void Ended(SimNode node)
    {
        _holders.Ended(node);
        _places.Ended(node);
        Levels.Ended(node);
        for (int slot = 0; slot < _layout.Count; slot++)
        {
            _groups[slot]?.Ended(node);
            _beliefs[slot]?.Ended(node);
            _volatiles[slot]?.Ended(node);
        }
    }

    public void Wiped(SimNode node)
    {
        for (int slot = 0; slot < _layout.Count; slot++)
        {
            _groups[slot]?.Wiped(node);
            _volatiles[slot]?.Wiped(node);
        }
    }

    /// <summary>After code of a node has run.</summary>
    /// <param name="node">Whose code.</param>
    /// <param name="between">No turn of the node is under way.</param>
    public void Look(SimNode node, bool between = true)
    {
        if (node.Loops is not { } loops || !node.IsUp || (between && !node.Changes.IsNew(loops, node.Witness)))
        {
            return;
        }

        Levels.Look(node, loops);
        for (int i = 0; i < _groups.Length; i++)
        {
            Group partition = loops.Group(i);
            Levels.Look(node, partition);
            _volatiles[i]?.Look(node, partition);
            _groups[i]?.Look(node, partition);
            _holders.Look(node, i, partition);
            _places.Look(node, i, partition);
            Changes.Look(node, i, partition);
            if (between)
            {
                _beliefs[i]?.Look(node, partition.Core);
            }
        }
    }

    /// <summary>A frame is handed to a node, before its loops take it in.</summary>
    public void Hears(SimNode node, ReadOnlySpan<byte> frame)
    {
        if (SnapshotFrame.Is(frame) || node.Loops is not { } loops)
        {
            return;
        }

        while (PeerFrame.TryRead(ref frame, out GroupId group, out RaftMessage message, out _))
        {
            int slot = _layout.IndexOf(group);
            _beliefs[slot]?.Hears(
                node, message, loops.Group(slot).Core, loops.Loops[_layout.LoopOf(slot, loops.Loops.Length)].Turns);
        }
    }

    /// <summary>Last entry of a group that is on the node's own disk, as its core knows.</summary>
    public LogIndex DurableIndex(SimNode node, GroupId group) =>
        node.Loops!.Group(_layout.IndexOf(group)).Core.DurableIndex;

    /// <summary>
    /// A node's state thread says that a state is stored, which is what the log is cut by: it is, up to that entry, and
    /// some are loaded, too.
    /// </summary>
    public void Stored(SimNode node, StateStored stored, IStateStore store)
    {
        CheckpointMark mark = store.Find(stored.Group) ?? default;
        if (mark.Index < stored.Index)
        {
            Break(
                "what counts as stored is stored",
                $"node {node.Id} says that the state of group {stored.Group} is stored up to entry "
                    + $"{stored.Index}; it is up to {mark.Index}");
        }

        if (stored.Index.Value % LoadedEvery != 0)
        {
            return;
        }

        try
        {
            // Its digest is among what is stored.
            StoredState.Load(store, stored.Group, mark, _config.AllStateLimits);
        }
        catch (StorageException error)
        {
            Break(
                "what counts as stored is stored",
                $"node {node.Id} cannot load the state of group {stored.Group} up to entry "
                    + $"{stored.Index}: {error.Message}");
        }
    }

    public void Appended(
        SimNode node, GroupId group, ulong first, IReadOnlyList<EntryId> entries, ReadOnlySpan<byte> bytes)
    {
        int number = _layout.IndexOf(group);
        _groups[number]!.Appended(node, first, entries);
        ulong index = first;
        while (EntryCodec.TryRead(ref bytes, out Term term, out EntryKind kind, out ReadOnlySpan<byte> payload))
        {
            if (kind == EntryKind.Commands)
            {
                NoteValues(payload, number, index, term.Value);
                _places.Appended(node, number, term, payload);
                NoteMeta(node, group, payload);
            }

            index++;
        }
    }

    /// <summary>The log says that something is on stable storage.</summary>
    public void Synced(SimNode node)
    {
        if (node.Disk.HasUnsynced("/data/log"))
        {
            Break(
                "an acknowledgement leaves after the sync",
                $"node {node.Id} is told of a sync while bytes are not synced");
        }
    }

    /// <summary>A frame leaves a node for another.</summary>
    public void Left(SimNode node, NodeId to, ReadOnlySpan<byte> frame)
    {
        if (SnapshotFrame.Is(frame) || node.Loops is not { } loops)
        {
            return;
        }

        while (PeerFrame.TryRead(
            ref frame,
            out GroupId group,
            out RaftMessage message,
            out MessageStamp stamp,
            out ReadOnlySpan<byte> beside))
        {
            message.To = to;
            int slot = _layout.IndexOf(group);
            if (message.Kind == RaftMessageKind.Forward)
            {
                NoteMeta(node, beside);
                continue;
            }

            _groups[slot]?.Left(node, message, loops.Group(slot).Core);
            _volatiles[slot]?.Left(node, message, stamp, loops.Group(slot));
            if (message.Kind == RaftMessageKind.Append)
            {
                _volatiles[slot]?.Carries(node, stamp, beside);
            }
        }
    }

    /// <summary>A frame of replies leaves a node.</summary>
    public void Answered(SimNode node, Network.ServerSession session, ReadOnlySpan<byte> frame, int count)
    {
        // What was committed in this very turn counts.
        Look(node, between: false);
        ReadOnlySpan<byte> rest = frame[(Frame.PrefixBytes + Frame.HeaderBytes)..];
        for (int i = 0; i < count; i++)
        {
            uint number = BinaryPrimitives.ReadUInt32LittleEndian(rest);
            int length = BinaryPrimitives.ReadInt32LittleEndian(rest[4..]);
            if (Outcome.TryRead(rest.Slice(Frame.ReplyHeaderBytes, length), out Outcome outcome)
                && outcome.Status == OutcomeStatus.Applied)
            {
                if (session.ValueOf(number) is { } value)
                {
                    CheckAcknowledged(node, value);
                }
                else if (session.TransactionOf(number) is { } asked)
                {
                    Transactions.Told(node, asked.Id, asked.IsFinish, outcome.Number);
                }
            }
            else if (outcome.Status == OutcomeStatus.Queued && session.LockOf(number) is { } name)
            {
                _places.Told(
                    node,
                    _layout.IndexOf(
                        InitialPartition.Of(Encoding.UTF8.GetBytes(name), _layout.Partitions),
                        isEphemeral: false),
                    outcome.Revision);
            }

            rest = rest[(Frame.ReplyHeaderBytes + length)..];
        }
    }

    /// <summary>The answer to a unary call leaves a node, which may have forwarded it.</summary>
    public void Answered(SimNode node, ReadOnlySpan<byte> command, ReadOnlySpan<byte> answer)
    {
        Look(node, between: false);
        if (Command.TryRead(command, out Command asked)
            && asked is { Kind: CommandKind.Set, Durability: Durability.Persistent }
            && Outcome.TryRead(answer, out Outcome outcome)
            && outcome.Status == OutcomeStatus.Applied)
        {
            CheckAcknowledged(node, Encoding.UTF8.GetString(asked.Value));
        }
    }

    private void NoteValues(ReadOnlySpan<byte> payload, int group, ulong index, ulong term)
    {
        CommandEntry.TryReadHeader(payload, out _, out int count, out ReadOnlySpan<byte> items);
        for (int i = 0; i < count && CommandEntry.TryReadItem(ref items, out ReadOnlySpan<byte> bytes); i++)
        {
            if (Command.TryRead(bytes, out Command command) && command.Kind == CommandKind.Set)
            {
                string value = Encoding.UTF8.GetString(command.Value);
                if (!_values.TryGetValue(value, out List<(int Group, ulong Index, ulong Term)>? places))
                {
                    _values[value] = places = [];
                }

                if (!places.Contains((group, index, term)))
                {
                    places.Add((group, index, term));
                }
            }
        }
    }

    private void NoteMeta(SimNode node, GroupId group, ReadOnlySpan<byte> payload)
    {
        if (group.IsMeta && CommandEntry.TryReadHeader(payload, out _, out _, out ReadOnlySpan<byte> items))
        {
            while (CommandEntry.TryReadItem(ref items, out ReadOnlySpan<byte> bytes))
            {
                NoteMeta(node, bytes);
            }
        }
    }

    private void NoteMeta(SimNode node, ReadOnlySpan<byte> bytes)
    {
        if (Command.TryRead(bytes, out Command command)
            && MetaCommand.Read(in command) is { Group.IsEphemeral: true } said)
        {
            _volatiles[_layout.IndexOf(said.Group)]!.Said(node, said);
        }
    }

    /// <summary>Values are unique, so the entries of a set, one for each attempt, are known by its value.</summary>
    private void CheckAcknowledged(SimNode node, string value)
    {
        if (!_values.TryGetValue(value, out List<(int Group, ulong Index, ulong Term)>? places))
        {
            Break("what is acknowledged is in a log", $"node {node.Id} acknowledges {value}");
            return;
        }

        int most = 0;
        foreach ((int number, ulong index, ulong term) in places)
        {
            GroupRules group = _groups[number]!;
            bool committed = index <= group.Committed && group.CommittedEntry(index).Term == term;
            most = Math.Max(most, committed ? group.Durable(index, group.CommittedEntry(index)) : 0);
        }

        if (most <= _config.Nodes / 2)
        {
            Break(
                "an acknowledged write is on the disks of a majority",
                $"node {node.Id} acknowledges {value}, entries {string.Join(", ", places)}, durable "
                    + $"on {most} of {_config.Nodes}");
        }
    }
}
