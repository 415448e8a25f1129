using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Partitions.Snapshots;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.Partitions.Groups;

/// <summary>
/// What a partition starts from: the stored state, then the log after it, through the same way into the state as
/// everything else. Used once by one <see cref="Group"/> at its construction.
/// </summary>
internal sealed class GroupRecovery(GroupId group, LoopOptions options, LoopPorts ports)
{
    private readonly IPartitionTrace? _trace = group.IsMeta ? null : ports.Trace;

    private const int ProgressMs = 2_000;

    private NodeTime _saidAt;

    /// <summary>The stored state's mark, if there is one.</summary>
    public CheckpointMark? Mark { get; private set; }

    /// <summary>Last entry in the state.</summary>
    public LogIndex Applied { get; private set; }

    public Term AppliedTerm { get; private set; }

    /// <summary>The feature level of the last entry in the state.</summary>
    public FeatureLevel AppliedLevel { get; private set; }

    /// <summary>
    /// The log has nothing that follows on the stored state, and begins anew behind it: the owner writes that to the
    /// log.
    /// </summary>
    public bool LogRestarts { get; private set; }

    private NodeTime Now => ports.Clock.Now();

    /// <summary>Loads the stored state, or makes an empty one.</summary>
    /// <exception cref="GroupDamagedException">The stored state cannot be used.</exception>
    /// <exception cref="FeatureLevelException">It has a feature level that this build does not support.</exception>
    public StateMachine LoadState()
    {
        Mark = group.IsEphemeral ? null : ports.States.Find(group);
        if (Mark is not { } mark)
        {
            return new StateMachine(options.StateLimits);
        }

        RequireLevel(mark.Level, "its stored state");
        NodeTime began = _saidAt = Now;
        StateMachine state = StoredState.Load(ports.States, group, mark, options.StateLimits, keys =>
            Say($"{keys:N0} keys loaded so far"));
        Applied = mark.Index;
        AppliedTerm = mark.Term;
        AppliedLevel = mark.Level;
        ports.Report(
            $"{group.Title}: {state.Counts.Keys:N0} keys loaded, up to entry {mark.Index}, in "
                + $"{(Now - began) / 1000.0:0.0} s.");
        return state;
    }

    /// <summary>A core without a log, for a group whose log is not stored.</summary>
    public RaftCore EmptyCore(in HardState promises, VotingRight voting) =>
        new(Config(), new RaftStart(promises with { Commit = default }, [], default, default) { Voting = voting });

    /// <summary>Replays what is committed after the stored state, and makes the core with the rest.</summary>
    /// <exception cref="GroupUnusableException">Log and stored state do not belong together.</exception>
    /// <exception cref="FeatureLevelException">The log has an entry of a feature level that this build does not
    /// support.</exception>
    public RaftCore RecoverLog(Action<EntryKind, FeatureLevel, ReadOnlySpan<byte>> apply)
    {
        RecoveredGroup found = Reconcile(ports.Log.Recovered(group));
        LogIndex commit = found.HardState.Commit < found.LastIndex ? found.HardState.Commit : found.LastIndex;
        commit = commit > Applied ? commit : Applied;
        _trace?.Recovered(group, found, commit);
        if (commit > Applied)
        {
            Replay(commit, found, apply);
        }

        RaftStart start = new(found.HardState with { Commit = commit }, found.Terms, found.LastIndex, Applied,
            found.Start, found.StartTerm)
        { Voting = options.Voting, Level = AppliedLevel };
        RaftCore core = new(Config(), start);
        if (found.LastIndex > commit)
        {
            ports.Log.Replay(group, commit.Next(), found.LastIndex, (first, chunk) =>
            {
                RequireLevels(chunk.Span);
                core.Restore(first, chunk.Span);
                _trace?.Replayed(group, first, chunk.Span);
            });
        }

        return core;
    }

    private RaftConfig Config() => new()
    {
        Self = options.Self,
        Group = group,
        Voters = options.Voters,
        ElectionTicks = options.ElectionTicks,
        HeartbeatTicks = options.HeartbeatTicks,
        PromiseMs = options.HasReadLeases && !group.IsEphemeral ? options.ElectionTicks * options.TickMs : 0,
        PromisedBeforeMs = options.MayHavePromised && !group.IsEphemeral ? options.ElectionTicks * options.TickMs : 0,
        PauseTicks = options.PauseMs / options.TickMs,
        Limits = group.IsEphemeral ? ports.Memory.LimitLog(options.RaftLimits, ports.Partitions) : options.RaftLimits,
        LevelMax = options.StateLimits.FeatureLevelMax,
        IsVolatile = group.IsEphemeral,
        Seed = unchecked((options.Seed * 0x9E3779B97F4A7C15) + group.Value),
    };

    /// <summary>
    /// Log and state are cut and stored each on its own, so they must be made to fit: the log must reach from at least
    /// the state's last entry on.
    /// </summary>
    private RecoveredGroup Reconcile(RecoveredGroup found)
    {
        found = found with { Terms = found.Terms ?? [] };
        if (found.Start > Applied)
        {
            string state = Mark is null
                ? "state/ in the data directory has no state of it (is a disk not mounted?)"
                : $"the stored state in state/ ends with entry {Applied}";
            throw new GroupUnusableException(
                $"The data of {group.Name} is incomplete: the log begins after entry {found.Start}, and {state}. It "
                    + $"is also so when the group had stopped on this node and the log has grown to half of "
                    + $"--log-limit since. {StorageException.WayOut}");
        }

        if (Mark is not { } mark)
        {
            return found;
        }

        if (mark.Term > found.HardState.Term)
        {
            throw new GroupUnusableException(
                $"The data of {group.Name} does not belong together: the stored state is of term {mark.Term}, and the "
                    + $"log knows no term after {found.HardState.Term}. {StorageException.WayOut}");
        }

        if (mark.Index > found.LastIndex || (TermAt(found, mark.Index) is { } term && term != mark.Term))
        {
            // A state from another node was put in place, and the node ended before its log followed: what the log has
            // is older, or was replaced.
            LogRestarts = true;
            return found with { Terms = [], LastIndex = mark.Index, Start = mark.Index, StartTerm = mark.Term };
        }

        return found.StartTerm.Value == 0 && found.Start.Value > 0
            ? found with { Terms = TermsAfter(found, mark.Index), Start = mark.Index, StartTerm = mark.Term }
            : found;
    }

    /// <summary>The term of an entry, as far as the log knows it.</summary>
    private static Term? TermAt(in RecoveredGroup found, LogIndex index)
    {
        if (index == found.Start)
        {
            return found.StartTerm.Value == 0 ? null : found.StartTerm;
        }

        Term? term = null;
        foreach (TermRun run in found.Terms)
        {
            if (run.First > index)
            {
                break;
            }

            term = run.Term;
        }

        return term;
    }

    private static List<TermRun> TermsAfter(in RecoveredGroup found, LogIndex index)
    {
        List<TermRun> runs = [];
        foreach (TermRun run in found.Terms)
        {
            if (run.First <= index.Next())
            {
                runs.Clear();
            }

            runs.Add(run.First > index ? run : new TermRun(index.Next(), run.Term));
        }

        if (found.LastIndex <= index)
        {
            runs.Clear();
        }

        return runs;
    }

    private void Replay(
        LogIndex commit, in RecoveredGroup found, Action<EntryKind, FeatureLevel, ReadOnlySpan<byte>> apply)
    {
        NodeTime began = _saidAt = Now;
        LogIndex first = Applied.Next();
        ports.Log.Replay(group, first, commit, (at, chunk) =>
        {
            _trace?.Replayed(group, at, chunk.Span);
            ReadOnlySpan<byte> entries = chunk.Span;
            while (EntryCodec.TryRead(
                ref entries, out Term term, out EntryKind kind, out FeatureLevel level, out ReadOnlySpan<byte> payload))
            {
                RequireLevel(level, "its log");
                InvariantException.Require(
                    level >= AppliedLevel, "the feature levels of replayed entries never decrease");
                apply(kind, level, payload);
                Applied = Applied.Next();
                AppliedTerm = term;
                AppliedLevel = level;
            }

            Say($"entries replayed up to {Applied} of {commit}");
        });
        InvariantException.Require(Applied == commit, "the log replays what it said it has");
        ports.Report(
            $"{group.Title}: entries {first} to {commit} of {found.LastIndex} replayed in "
                + $"{(Now - began) / 1000.0:0.0} s.");
    }

    /// <summary>What is not committed yet is checked, too: the core must not hold what it may not append.</summary>
    private void RequireLevels(ReadOnlySpan<byte> entries)
    {
        while (EntryCodec.TryRead(ref entries, out _, out _, out FeatureLevel level, out _))
        {
            RequireLevel(level, "its log");
        }
    }

    private void RequireLevel(FeatureLevel level, string where) =>
        FeatureLevelException.Require(level, options.StateLimits, $"{group.Name}, {where}");

    private void Say(string progress)
    {
        if (Now - _saidAt >= ProgressMs)
        {
            _saidAt = Now;
            ports.Report($"{group.Title}: {progress}.");
        }
    }
}
