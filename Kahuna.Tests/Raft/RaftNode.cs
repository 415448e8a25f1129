using System.Text;
using Kahuna.Client.Wire.Buffers;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;

namespace Kahuna.Tests.Raft;

/// <summary>
/// A core on a simulated disk: it carries out each Ready as a partition does. Writes wait until <see cref="Persist"/>; a crash
/// loses those that still wait. Owned by one test.
/// </summary>
internal sealed class RaftNode
{
    private readonly RaftConfig _config;
    private readonly Queue<Write> _writes = new();
    private RaftCore? _core;

    public RaftNode(RaftConfig config)
    {
        _config = config;
        Restart(default);
    }

    public NodeId Id => _config.Self;

    public bool IsUp => _core is not null;

    public RaftCore Core => _core ?? throw new InvalidOperationException($"node {Id} is down");

    /// <summary>What is on stable storage.</summary>
    public List<LogItem> DurableLog { get; private set; } = [];

    public HardState DurableState { get; private set; }

    /// <summary>What was handed to storage, durable or not: after <see cref="Drain"/> the same as the core's log.</summary>
    public List<LogItem> Log { get; private set; } = [];

    /// <summary>Payloads applied since the last start, by index.</summary>
    public List<LogItem> Applied { get; } = [];

    public int PendingWrites => _writes.Count;

    /// <summary>Fetches that storage has not answered.</summary>
    public Queue<LogFetch> Fetches { get; } = new();

    /// <summary>Called with every message that leaves (to itself, too).</summary>
    public Action<Packet> Send { get; set; } = static _ => { };

    public Action<LogIndex, LogItem> OnApplied { get; set; } = static (_, _) => { };

    public Action<ReadState> OnRead { get; set; } = static _ => { };

    public Action<LogIndex, LogItem> OnStored { get; set; } = static (_, _) => { };

    public Action<string> Trace { get; set; } = static _ => { };

    public LogIndex AppliedFrom { get; private set; }

    /// <summary>Before anything else: gives the node a disk with a past.</summary>
    public void Preset(in HardState state, List<LogItem> log)
    {
        DurableState = state;
        DurableLog = log;
        Restart(default);
    }

    public void Crash()
    {
        _core = null;
        _writes.Clear();
        Fetches.Clear();
    }

    /// <summary>Starts from what is durable, with the state applied up to <paramref name="applied"/>.</summary>
    public void Restart(LogIndex applied)
    {
        var terms = new List<TermRun>();
        for (int i = 0; i < DurableLog.Count; i++)
        {
            if (terms.Count == 0 || terms[^1].Term != DurableLog[i].Term)
            {
                terms.Add(new TermRun(new LogIndex((ulong)i + 1), DurableLog[i].Term));
            }
        }

        _core = new RaftCore(_config, new RaftStart(DurableState, terms, new LogIndex((ulong)DurableLog.Count), applied));
        Log = [.. DurableLog];
        Applied.Clear();
        Applied.AddRange(DurableLog.Take((int)applied.Value));
        AppliedFrom = applied;
        if (applied.Value < (ulong)DurableLog.Count)
        {
            _core.Restore(applied.Next(), Encode(DurableLog.Skip((int)applied.Value)));
        }
    }

    /// <summary>Carries out Readys until there is none.</summary>
    public void Drain()
    {
        while (_core is not null && _core.HasReady)
        {
            CarryOut();
        }
    }

    /// <summary>The oldest write reaches stable storage, and what waited for it leaves.</summary>
    public void Persist()
    {
        Write write = _writes.Dequeue();
        if (write.State is { } state)
        {
            DurableState = state;
        }

        if (write.Items.Count > 0)
        {
            Store(DurableLog, write.First, write.Items);
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
        for (int i = (int)fetch.First.Value - 1; i < Log.Count && (items.Count == 0 || bytes < fetch.BytesMax) && !fails; i++)
        {
            items.Add(Log[i]);
            bytes += EntryCodec.HeaderBytes + Log[i].Text.Length;
        }

        byte[] entries = Encode(items);
        if (Core.CompleteFetch(fetch.Follower, fetch.First, entries, out RaftMessage append))
        {
            Send(new Packet(append, entries));
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

    private static void Store(List<LogItem> log, LogIndex first, List<LogItem> items)
    {
        int keep = (int)first.Value - 1;
        Assert.True(keep <= log.Count, "entries are persisted without a gap");
        log.RemoveRange(keep, log.Count - keep);
        log.AddRange(items);
    }

    private void CarryOut()
    {
        RaftCore core = Core;
        (LogIndex first, LogIndex last) = core.Unpersisted;
        var items = new List<LogItem>();
        for (LogIndex index = first; index <= last; index = index.Next())
        {
            items.Add(Read(index));
        }

        if (items.Count > 0)
        {
            Store(Log, first, items);
            for (int i = 0; i < items.Count; i++)
            {
                OnStored(first + (ulong)i, items[i]);
            }

            Trace($"{Id} stores {first}..{last} terms {string.Join(',', items.Select(item => item.Term))}");
        }

        HardState? state = core.HardStateChanged ? core.HardState : null;
        if (state is { } changed)
        {
            Trace($"{Id} saves term {changed.Term} vote {changed.Vote} commit {changed.Commit}");
        }

        if (items.Count > 0 || state is not null)
        {
            _writes.Enqueue(new Write(state, first, items, []));
        }

        foreach (OutgoingMessage outgoing in core.Messages)
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

        (LogIndex firstCommitted, LogIndex lastCommitted) = core.Committed;
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

        foreach (ReadState read in core.ReadStates)
        {
            Trace($"{Id} confirms reads up to ticket {read.Ticket} at {read.Index}");
            OnRead(read);
        }

        foreach (LogFetch fetch in core.Fetches)
        {
            Trace($"{Id} fetches from {fetch.First} for {fetch.Follower}");
            Fetches.Enqueue(fetch);
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
            return new Packet(message, []);
        }

        ByteBuffer buffer = ByteBuffer.Rent();
        Core.CopyEntries(message.Index.Next(), message.EntryCount, buffer);
        byte[] entries = buffer.Written.ToArray();
        buffer.Return();
        return new Packet(message, entries);
    }

    private sealed record Write(HardState? State, LogIndex First, List<LogItem> Items, List<Packet> Held);
}
