using System.Text;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Wire.Buffers;

namespace Kahuna.Tests.Raft;

/// <summary>
/// A core on a simulated disk. It carries out each Ready as a partition does. Writes wait until <see cref="Persist"/>;
/// a crash loses the waiting ones, a wipe loses everything. Its state is the list of applied entries. Owned by one
/// test.
/// </summary>
internal sealed class RaftNode
{
    private readonly RaftConfig _config;
    private readonly Queue<Write> _writes = new();
    private readonly Dictionary<NodeId, int> _livesSeen = [];
    private readonly List<DiskLog> _forgotten = [];
    private List<LogItem> _flushed = [];
    private StateCopy? _restart;
    private RaftCore? _core;

    public RaftNode(RaftConfig config)
    {
        _config = config;
        Restart(default);
    }

    public NodeId Id => _config.Self;

    public bool IsUp => _core is not null;

    public RaftCore Core => _core ?? throw new InvalidOperationException($"node {Id} is down");

    /// <summary>The log on stable storage.</summary>
    public DiskLog DurableLog { get; private set; } = new();

    public HardState DurableState { get; private set; }

    /// <summary>
    /// The log handed to storage, durable or not. After <see cref="Drain"/> it equals the core's log.
    /// </summary>
    public DiskLog Log { get; private set; } = new();

    /// <summary>The state: the applied entries from index 1 on, by the log or by a snapshot.</summary>
    public List<LogItem> Applied { get; private set; } = [];

    /// <summary>Entries of the state on stable storage; the log may be cut up to here.</summary>
    public int Flushed => _flushed.Count;

    /// <summary>The node's voting right, as stored on its disk.</summary>
    public VotingRight Voting { get; set; }

    /// <summary>How often the directory was lost.</summary>
    public int Life { get; private set; }

    public int Starts { get; private set; }

    /// <summary>Hard states handed to storage in this life.</summary>
    public List<HardState> Saved { get; } = [];

    public int PendingWrites => _writes.Count;

    /// <summary>Fetches that storage has not answered.</summary>
    public Queue<LogFetch> Fetches { get; } = new();

    /// <summary>Called with every message that leaves (to itself, too).</summary>
    public Action<Packet> Send { get; set; } = static _ => { };

    public Action<LogIndex, LogItem> OnApplied { get; set; } = static (_, _) => { };

    public Action<ReadState> OnRead { get; set; } = static _ => { };

    public Action<LogIndex, LogItem> OnStored { get; set; } = static (_, _) => { };

    public Action<StateCopy> OnInstalled { get; set; } = static _ => { };

    /// <summary>Called with every follower that needs a snapshot.</summary>
    public Action<NodeId> OnSnapshotWanted { get; set; } = static _ => { };

    public Action<string> Trace { get; set; } = static _ => { };

    /// <summary>Before anything else: gives the node a disk with a past, its log cut through an index.</summary>
    public void Preset(in HardState state, List<LogItem> log, int cut)
    {
        DurableState = state;
        DurableLog = new DiskLog();
        DurableLog.Store(new LogIndex(1), log);
        DurableLog.CutThrough((ulong)cut);
        _flushed = log[..cut];
        Restart(default);
    }

    public void Crash()
    {
        _core = null;
        _writes.Clear();
        Fetches.Clear();
    }

    /// <summary>Loses the directory. Its log is remembered for the rules only.</summary>
    public void Wipe()
    {
        Crash();
        _forgotten.Add(DurableLog);
        DurableLog = new DiskLog();
        DurableState = default;
        _flushed = [];
        Saved.Clear();
        Voting = VotingRight.Rejoining;
        Life++;
    }

    /// <summary>
    /// Starts from the durable log, with the state applied up to <paramref name="applied"/>, or as far as it was
    /// flushed.
    /// </summary>
    public void Restart(LogIndex applied)
    {
        Starts++;
        _restart = null;
        var first = new LogIndex(Math.Max(applied.Value, (ulong)Flushed));

        // A rejoining start uses a new seed for its queries. An ordinary start reuses the seed, and so the timeouts,
        // which keeps traces simple.
        RaftConfig config = Voting == VotingRight.Full
            ? _config
            : _config with { Seed = _config.Seed + ((ulong)Starts << 32) };
        var start =
            new RaftStart(
                DurableState,
                DurableLog.Terms(),
                new LogIndex(DurableLog.Last),
                first,
                new LogIndex(DurableLog.Start),
                DurableLog.StartTerm)
            { Voting = Voting };
        _core = new RaftCore(config, start);
        Log = DurableLog.Copy();
        Applied = [.. _flushed, .. DurableLog.Behind((ulong)Flushed).Take((int)first.Value - Flushed)];
        if (first.Value < DurableLog.Last)
        {
            _core.Restore(first.Next(), Encode(DurableLog.Behind(first.Value)));
        }
    }

    /// <summary>The committed entry was on this node's disk, in this life or an earlier one.</summary>
    public bool Held(ulong index, LogItem item) =>
        DurableLog.Holds(index, item) || _forgotten.Exists(log => log.Holds(index, item));

    /// <summary>
    /// A message arrives, on a link that tells the sender's lives apart: nothing of an earlier life comes after a later
    /// one, and no message outlives both its ends. False when it was dropped for that.
    /// </summary>
    public bool Receive(Packet packet, int senderLife)
    {
        NodeId from = packet.Message.From;
        int seen = _livesSeen.GetValueOrDefault(from);
        if (packet.SenderLife < seen || (packet.SenderLife < senderLife && packet.ReceiverStarts != Starts))
        {
            return false;
        }

        if (packet.SenderLife > seen)
        {
            _livesSeen[from] = packet.SenderLife;
            Core.ForgetFollower(from);
        }

        Core.Step(packet.Message, packet.Entries);
        return true;
    }

    /// <summary>
    /// Flushes the state and cuts the log up to <paramref name="index"/>, or as far as it may be. False when nothing
    /// may be cut.
    /// </summary>
    public bool Trim(ulong index)
    {
        ulong through = Math.Min(
            Math.Min(index, (ulong)Applied.Count), Math.Min(Core.DurableIndex.Value, DurableLog.Last));
        if (_restart is not null || _writes.Any(write => write.Restart is not null) || through <= Log.Start)
        {
            return false;
        }

        if ((ulong)Flushed < through)
        {
            _flushed = Applied[..(int)through];
        }

        DurableLog.CutThrough(through);
        Log.CutThrough(through);
        Core.CutThrough(new LogIndex(through));
        return true;
    }

    /// <summary>The state as of <paramref name="index"/>, which is applied and not below the log's start.</summary>
    public StateCopy CopyState(ulong index) => new(new LogIndex(index), Log.TermAt(index), Applied[..(int)index]);

    /// <summary>A snapshot has arrived. It is in use, and its write waits, if the core takes it.</summary>
    public bool Install(StateCopy state)
    {
        Drain();
        if (!Core.InstallSnapshot(state.Index, state.Term))
        {
            return false;
        }

        Log = new DiskLog();
        Log.Restart(state.Index.Value, state.Term);
        Applied = [.. state.Items];
        _restart = state;
        OnInstalled(state);
        return true;
    }

    /// <summary>Carries out Readys until there is none.</summary>
    public void Drain()
    {
        while (_core is not null && _core.PrepareReady())
        {
            CarryOut();
        }
    }

    /// <summary>The oldest write reaches stable storage, and the messages that waited for it leave.</summary>
    public void Persist()
    {
        Write write = _writes.Dequeue();
        if (write.Restart is { } restart)
        {
            DurableLog = new DiskLog();
            DurableLog.Restart(restart.Index.Value, restart.Term);
            _flushed = [.. restart.Items];
        }

        if (write.State is { } state)
        {
            DurableState = state;
        }

        if (write.Items.Count > 0)
        {
            DurableLog.Store(write.First, write.Items);
            LogIndex last = write.First + (ulong)(write.Items.Count - 1);
            Core.Persisted(last, write.Items[^1].Term);
        }

        foreach (Packet packet in write.Held)
        {
            Leave(packet);
        }
    }

    /// <summary>Storage answers the oldest fetch.</summary>
    public void AnswerFetch(bool fails)
    {
        LogFetch fetch = Fetches.Dequeue();
        var items = new List<LogItem>();
        int bytes = 0;
        for (ulong i = fetch.First.Value;
            i > Log.Start && i <= Log.Last && (items.Count == 0 || bytes < fetch.BytesMax) && !fails;
            i++)
        {
            items.Add(Log[i]);
            bytes += EntryCodec.HeaderBytes + Log[i].Text.Length;
        }

        byte[] entries = Encode(items);
        if (Core.CompleteFetch(fetch.Follower, fetch.First, entries, out RaftMessage append))
        {
            Send(new Packet(append, entries) { SenderLife = Life });
        }
    }

    public bool Propose(string text) => Core.TryPropose(EntryKind.Commands, Encoding.ASCII.GetBytes(text), out _);

    private static byte[] Encode(IEnumerable<LogItem> items)
    {
        ByteBuffer buffer = ByteBuffer.Rent();
        foreach (LogItem item in items)
        {
            EntryCodec.Write(buffer, item.Term, item.Kind, Encoding.ASCII.GetBytes(item.Text));
        }

        byte[] bytes = buffer.Written.ToArray();
        buffer.Return();
        return bytes;
    }

    private void CarryOut()
    {
        RaftCore core = Core;
        (LogIndex first, LogIndex last) = core.TakeReady().Unpersisted;
        var items = new List<LogItem>();
        for (LogIndex index = first; index <= last; index = index.Next())
        {
            items.Add(Read(index));
        }

        if (items.Count > 0)
        {
            Log.Store(first, items);
            for (int i = 0; i < items.Count; i++)
            {
                OnStored(first + (ulong)i, items[i]);
            }

            Trace($"{Id} stores {first}..{last} terms {string.Join(',', items.Select(item => item.Term))}");
        }

        HardState? state = core.TakeReady().HardStateChanged ? core.TakeReady().HardState : null;
        if (state is { } changed)
        {
            Saved.Add(changed);
            Trace($"{Id} saves term {changed.Term} vote {changed.Vote} commit {changed.Commit}");
        }

        if (items.Count > 0 || state is not null)
        {
            _writes.Enqueue(new Write(_restart, state, first, items, []));
            _restart = null;
        }

        Assert.True(_restart is null, "a new start of the log is written with the next Ready");

        foreach (OutgoingMessage outgoing in core.TakeReady().Messages)
        {
            Packet packet = Pack(outgoing.Message);
            Trace($"{Id} says {MessageText.Of(packet.Message)}{(outgoing.AfterDurable ? " after durable" : "")}");
            if (outgoing.AfterDurable && _writes.Count > 0)
            {
                _writes.Last().Held.Add(packet);
            }
            else
            {
                Leave(packet);
            }
        }

        (LogIndex firstCommitted, LogIndex lastCommitted) = core.TakeReady().Committed;
        for (LogIndex index = firstCommitted; index <= lastCommitted; index = index.Next())
        {
            LogItem item = Read(index);
            Applied.Add(item);
            OnApplied(index, item);
        }

        if (firstCommitted <= lastCommitted)
        {
            Trace($"{Id} applies {firstCommitted}..{lastCommitted}");
        }

        foreach (ReadState read in core.TakeReady().ReadStates)
        {
            Trace($"{Id} confirms reads up to ticket {read.Ticket} at {read.Index}");
            OnRead(read);
        }

        foreach (LogFetch fetch in core.TakeReady().Fetches)
        {
            Trace($"{Id} fetches from {fetch.First} for {fetch.Follower}");
            Fetches.Enqueue(fetch);
        }

        foreach (NodeId follower in core.TakeReady().SnapshotsWanted)
        {
            Trace($"{Id} wants a snapshot for {follower}");
            OnSnapshotWanted(follower);
        }

        core.Advance();
    }

    private void Leave(Packet packet)
    {
        if (packet.Message.To == Id)
        {
            Core.Step(packet.Message, packet.Entries);
        }
        else
        {
            Send(packet);
        }
    }

    private LogItem Read(LogIndex index)
    {
        ReadOnlySpan<byte> payload = Core.Payload(index, out Term term, out EntryKind kind);
        return new LogItem(term, kind, Encoding.ASCII.GetString(payload));
    }

    private Packet Pack(RaftMessage message)
    {
        if (message.Kind != RaftMessageKind.Append || message.EntryCount == 0)
        {
            return new Packet(message, []) { SenderLife = Life };
        }

        ByteBuffer buffer = ByteBuffer.Rent();
        Core.CopyEntries(message.Index.Next(), message.EntryCount, buffer);
        byte[] entries = buffer.Written.ToArray();
        buffer.Return();
        return new Packet(message, entries) { SenderLife = Life };
    }

    private sealed record Write(
        StateCopy? Restart, HardState? State, LogIndex First, List<LogItem> Items, List<Packet> Held);
}
