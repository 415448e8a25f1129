using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Partitions.Snapshots;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State;

namespace Kahuna.Server.Partitions.Groups;

/// <summary>
/// What a group starts with: its state, its core, and what the start has found out. Immutable; the parts belong to the
/// group.
/// </summary>
/// <param name="Id">The group.</param>
/// <param name="Applied">The state with everything that is known to be committed.</param>
/// <param name="Core">The core with the rest of the log.</param>
/// <param name="Audit">What the replayed entries say of the members' states.</param>
internal sealed record GroupStart(GroupId Id, AppliedState Applied, RaftCore Core, StateAudit Audit)
{
    /// <summary>Up to this entry the state is in the store.</summary>
    public LogIndex Stored { get; private init; }

    /// <summary>Commands that were replayed.</summary>
    public int Replayed { get; private init; }

    /// <summary>The log has nothing that follows on the stored state, and begins anew behind it.</summary>
    public bool LogRestarts { get; private init; }

    /// <summary>
    /// The rule that was broken meanwhile, or what of the stored data cannot be used. State and core are empty then,
    /// and are not asked.
    /// </summary>
    public Exception? Error { get; private init; }

    /// <summary>The start of a group whose entries are not stored.</summary>
    /// <param name="id">The group.</param>
    /// <param name="options">How the group works.</param>
    /// <param name="ports">The node's log.</param>
    /// <param name="promises">Term and vote as stored.</param>
    public static GroupStart Empty(GroupId id, LoopOptions options, LoopPorts ports, in HardState promises)
    {
        StateMachine state = new(options.StateLimits);
        if (id.IsEphemeral)
        {
            ports.Memory.Track(state);
        }

        RaftCore core = new GroupRecovery(id, options, ports).EmptyCore(promises, VotingRight.Full);
        return new GroupStart(id, new AppliedState(state), core, new StateAudit(id, options, ports.Report));
    }

    /// <summary>Loads the stored state and replays the log behind it.</summary>
    public static GroupStart Load(GroupId id, LoopOptions options, LoopPorts ports)
    {
        try
        {
            GroupRecovery recovery = new(id, options, ports);
            StateMachine loaded = recovery.LoadState();
            AppliedState applied = new(loaded, recovery.Applied, recovery.AppliedTerm);
            StateAudit audit = new(id, options, ports.Report);
            EntryApplier applier = new(applied, audit);
            ReplayedCommands commands = new(loaded);
            int replayed = 0;
            RaftCore core = recovery.RecoverLog((kind, payload) =>
            {
                CommittedEntry entry = new(recovery.Applied.Next(), kind, payload);
                replayed += applier.Apply(entry, in commands, replies: 0, isLeader: false, isRecovered: true);
            });
            applied.Replace(loaded, recovery.Applied, recovery.AppliedTerm);
            return new GroupStart(id, applied, core, audit)
            {
                Stored = recovery.Mark?.Index ?? default,
                Replayed = replayed,
                LogRestarts = recovery.LogRestarts,
            };
        }
        catch (Exception error) when (error is InvariantException or GroupDamagedException)
        {
            return Empty(id, options, ports, ports.Log.Recovered(id).HardState) with { Error = error };
        }
    }
}
