using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.State;
using Kahuna.Wire.Buffers;

namespace Kahuna.Server.Partitions.Snapshots;

/// <summary>
/// The follower's side of snapshots: checks what arrives, lays it beside the stored state, and when all is there and
/// its digest is right, puts it in that one's place and hands the loaded state to the loop. A crash at any moment
/// leaves the old state or the new one. Owned by the <see cref="CheckpointService"/>.
/// </summary>
internal sealed class SnapshotSink(CheckpointOptions options, CheckpointPorts ports) : IDisposable
{
    private const int AskAgainMs = 20;

    private readonly List<Receiving> _receivings = [];

    public ICheckpointLoops? Loops { get; set; }

    public NodeTime Due
    {
        get
        {
            NodeTime due = NodeTime.Never;
            foreach (Receiving receiving in _receivings)
            {
                due = NodeTime.Min(due, receiving.Due);
            }

            return due;
        }
    }

    /// <summary>A chunk has arrived.</summary>
    public void Arrived(NodeId from, ReadOnlySpan<byte> frame, NodeTime now)
    {
        SnapshotHeader header = SnapshotFrame.ReadHeader(frame);
        if (!SnapshotFrame.TryReadChunk(frame, out CheckpointMark mark, out ReadOnlySpan<byte> records))
        {
            ports.Report($"A chunk of a snapshot from node {from} is damaged and was dropped; it is sent again.");
            return;
        }

        GroupId group = header.Group;
        Receiving? receiving = _receivings.Find(one => one.Group == group);
        if (receiving is null || receiving.Transfer != header.Transfer || receiving.From != from)
        {
            if (receiving is not null && (receiving.Term > header.Term || receiving.Asking))
            {
                return;
            }

            if (header.Chunk != 0)
            {
                // Its beginning is not here: the sender begins anew.
                Answer(from, header with { Chunk = 0, Flags = 0 });
                return;
            }

            receiving = Begin(from, header, mark, now);
            if (receiving is null)
            {
                return;
            }
        }

        if (header.Chunk == receiving.Next && !receiving.Complete)
        {
            if (!TryTake(receiving, header, records))
            {
                return;
            }

            receiving.Due = now + options.GiveUpMs;
            if (receiving.Complete)
            {
                Ask(receiving);
            }
        }

        Answer(from, header with
        {
            Chunk = receiving.Next,
            Flags = receiving.Complete ? SnapshotFrame.LoadingFlag
            : (byte)0
        });
    }

    /// <summary>The loop says whether the state is needed.</summary>
    public void Answered(InstallAnswered answered, NodeTime now)
    {
        if (_receivings.Find(one => one.Group == answered.Group && one.Asking) is not { } receiving)
        {
            return;
        }

        switch (answered.Answer)
        {
            case InstallAnswer.NotNow:
                receiving.Asking = false;
                receiving.Due = now + AskAgainMs;
                break;
            case InstallAnswer.Superseded:
                Finish(receiving, SnapshotFrame.DoneFlag);
                break;
            case InstallAnswer.Ready:
                PutInPlace(receiving);
                break;
        }
    }

    public bool Step(NodeTime now)
    {
        if (_receivings.Find(one => now >= one.Due) is not { } due)
        {
            return false;
        }

        if (due.Complete)
        {
            Ask(due);
        }
        else
        {
            ports.Report(
                $"{due.Group.Title}: nothing more of the state from node {due.From} arrived for "
                    + $"{options.GiveUpMs / 1000} s; what was received is dropped.");
            Remove(due);
        }

        return true;
    }

    public void Dispose()
    {
        foreach (Receiving receiving in _receivings.ToArray())
        {
            Remove(receiving);
        }
    }

    private Receiving? Begin(NodeId from, in SnapshotHeader header, in CheckpointMark mark, NodeTime now)
    {
        GroupId group = header.Group;
        Remove(_receivings.Find(one => one.Group == group));
        CheckpointMark? own = group.IsEphemeral ? null : ports.Store.Find(group);
        if (own is { } stored && stored.Index >= mark.Index)
        {
            Answer(from, header with { Flags = SnapshotFrame.DoneFlag });
            return null;
        }

        try
        {
            // Beside an own state of any size the other one must not be in memory; where nothing is stored there is
            // next to none.
            Receiving begun = Receiving.Begin(options, ports.Store, from, header, mark, isLoaded: own is null);
            begun.Due = now + options.GiveUpMs;
            _receivings.Add(begun);
            ports.Report($"{group.Title}: receives the state up to entry {mark.Index} from node {from}.");
            return begun;
        }
        catch (StateWriteException error) when (error.NoSpace)
        {
            Refuse(from, header, error.Message);
            return null;
        }
    }

    private bool TryTake(Receiving receiving, in SnapshotHeader header, ReadOnlySpan<byte> records)
    {
        try
        {
            receiving.Take(records);
        }
        catch (StateWriteException error) when (error.NoSpace)
        {
            Remove(receiving);
            Refuse(receiving.From, header, error.Message);
            return false;
        }

        InvariantException.Require(header.Chunk == receiving.Next && !receiving.Complete, "chunks are taken in order");
        receiving.Next++;
        if ((header.Flags & SnapshotFrame.LastFlag) == 0)
        {
            return true;
        }

        if (!receiving.IsVerified(out string? wrong))
        {
            Remove(receiving);
            Refuse(receiving.From, header, wrong!);
            return false;
        }

        receiving.Complete = true;
        return true;
    }

    private void Ask(Receiving receiving)
    {
        receiving.Asking = true;
        receiving.Due = NodeTime.Never;
        Loops!.Post(new PrepareInstall(receiving.Group, receiving.Mark) { Epoch = receiving.Header.Epoch });
    }

    /// <summary>
    /// The partition stands still meanwhile, as if the process were paused: its own state gives way before the new one
    /// is loaded, so that memory never holds both of any size.
    /// </summary>
    private void PutInPlace(Receiving receiving)
    {
        GroupId group = receiving.Group;
        try
        {
            receiving.Writer?.Commit();
        }
        catch (StateWriteException error) when (error.NoSpace)
        {
            Loops!.Post(new Install(group, receiving.Mark, State: null));
            Remove(receiving);
            Refuse(receiving.From, receiving.Header, error.Message);
            return;
        }

        Epoch epoch = receiving.Header.Epoch;
        Loops!.Post(new DropState(group) { Epoch = epoch });
        StateMachine state = receiving.State
            ?? StoredState.Load(ports.Store, group, receiving.Mark, options.StateLimits, _ => SayLoading());
        Loops!.Post(new Install(group, receiving.Mark, state) { Epoch = epoch });
        ports.Counts.AddReceived();
        ports.Report(
            $"{group.Title}: the state up to entry {receiving.Mark.Index} is installed ({state.Counts.Keys} keys).");
        Finish(receiving, SnapshotFrame.DoneFlag);
    }

    /// <summary>
    /// Loading takes this thread for as long as the state is large, also from the groups whose states arrive meanwhile;
    /// none of the senders must take that for silence.
    /// </summary>
    private void SayLoading()
    {
        NodeTime now = ports.Clock.Now();
        foreach (Receiving receiving in _receivings)
        {
            if (now - receiving.SaidAt >= options.ResendMs)
            {
                receiving.SaidAt = now;
                Answer(receiving.From,
                    receiving.Header with { Chunk = receiving.Next, Flags = SnapshotFrame.LoadingFlag });
            }
        }
    }

    private void Finish(Receiving receiving, byte flag)
    {
        Remove(receiving);
        Answer(receiving.From, receiving.Header with { Flags = flag });
    }

    private void Refuse(NodeId from, in SnapshotHeader header, string reason)
    {
        ports.Report($"{header.Group.Title}: the state from node {from} cannot be taken: {reason}");
        Answer(from, header with { Flags = SnapshotFrame.RefusedFlag });
    }

    private void Answer(NodeId to, in SnapshotHeader header)
    {
        ByteBuffer frame = ports.Transport.BeginFrame();
        SnapshotFrame.WriteAnswer(frame, header);

        // A lost answer is made up for by the next one: the sender repeats what is not answered.
        ports.Transport.TrySend(to, frame);
    }

    private void Remove(Receiving? receiving)
    {
        if (receiving is not null && _receivings.Remove(receiving))
        {
            receiving.Dispose();
        }
    }
}
