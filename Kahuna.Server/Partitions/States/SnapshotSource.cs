using Kahuna.Client.Wire.Buffers;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Partitions.States;

/// <summary>
/// The leader's side of snapshots: reads the stored state, which later writes do not change, and sends it in numbered chunks. A few are on their
/// way at a time and are kept until the follower has them, so that a lost link costs no more than these. Owned by the <see cref="StateKeeper"/>.
/// </summary>
internal sealed class SnapshotSource(StateKeeperOptions options, KeeperPorts ports) : IDisposable
{
    private const int RetryMs = 5;

    private readonly List<Sending> _sendings = [];
    private readonly Pace _pace = new(options.BytesPerSecond);
    private ulong _transfers = options.FirstTransfer;
    private long _dueMs = long.MaxValue;

    public IStateLoops? Loops { get; set; }

    public long DueMs => _sendings.Count == 0 ? long.MaxValue : _dueMs;

    public void Begin(SnapshotWanted wanted, long nowMs)
    {
        Remove(_sendings.Find(sending => sending.Group == wanted.Group && sending.Follower == wanted.Follower));
        if (Open(wanted, nowMs) is { } begun)
        {
            _sendings.Add(begun);
            _dueMs = nowMs;
            ports.Report($"Partition {wanted.Group.Value - 1}: the log does not reach back to node {wanted.Follower}; the state up to entry {begun.Mark.Index} is sent to it.");
        }
        else
        {
            Loops!.Post(new SnapshotSent(wanted.Group, wanted.Follower, default, Installed: false));
        }
    }

    /// <summary>Ends all transfers of a group.</summary>
    public void End(GroupId group)
    {
        foreach (Sending sending in _sendings.FindAll(sending => sending.Group == group))
        {
            Remove(sending);
        }
    }

    /// <summary>The follower has said how far it is.</summary>
    public void Answered(NodeId from, in SnapshotHeader answer, long nowMs)
    {
        ulong transfer = answer.Transfer;
        if (_sendings.Find(sending => sending.Follower == from && sending.Transfer == transfer) is not { } sending)
        {
            return;
        }

        if ((answer.Flags & (SnapshotFrame.DoneFlag | SnapshotFrame.RefusedFlag)) != 0)
        {
            Finish(sending, installed: (answer.Flags & SnapshotFrame.DoneFlag) != 0);
        }
        else if (answer.Chunk < sending.FirstKept || answer.Chunk > sending.NextRead)
        {
            // The follower has lost what it had, by a restart: it gets the state as it is stored now, from the beginning.
            Remove(sending);
            Begin(new SnapshotWanted(sending.Group, sending.Follower, sending.Term), nowMs);
        }
        else if (answer.Chunk > sending.FirstKept)
        {
            sending.Acknowledged(answer.Chunk);
            sending.ProgressMs = sending.SentMs = nowMs;
            _dueMs = nowMs;
        }
    }

    public bool Step(long nowMs)
    {
        if (nowMs < DueMs)
        {
            return false;
        }

        _dueMs = long.MaxValue;
        bool worked = false;
        foreach (Sending sending in _sendings.ToArray())
        {
            worked |= Step(sending, nowMs);
        }

        return worked;
    }

    public void Dispose()
    {
        foreach (Sending sending in _sendings.ToArray())
        {
            Remove(sending);
        }
    }

    private Sending? Open(SnapshotWanted wanted, long nowMs) =>
        ports.Store.OpenReader(wanted.Group) is { } reader
            ? new Sending(wanted, ++_transfers, reader) { ProgressMs = nowMs, SentMs = nowMs }
            : null;

    private bool Step(Sending sending, long nowMs)
    {
        if (nowMs - sending.ProgressMs >= options.GiveUpMs)
        {
            ports.Report($"Partition {sending.Group.Value - 1}: node {sending.Follower} has not answered for {options.GiveUpMs / 1000} s; sending the state to it ends, and begins anew when it answers again.");
            Finish(sending, installed: false);
            return true;
        }

        if (sending.FirstKept < sending.NextSent && nowMs - sending.SentMs >= options.ResendMs)
        {
            sending.SendAgain();
        }

        if (sending.NextSent < sending.NextRead)
        {
            if (nowMs >= sending.NotBeforeMs)
            {
                return Send(sending, nowMs);
            }

            _dueMs = Math.Min(_dueMs, sending.NotBeforeMs);
            return false;
        }

        if (!sending.ReadToEnd && sending.NextRead - sending.FirstKept < (ulong)options.ChunksInFlight)
        {
            long ready = _pace.ReadyMs(nowMs);
            if (ready <= nowMs)
            {
                _pace.Took(sending.ReadChunk(options.ChunkBytes));
                return Send(sending, nowMs);
            }

            _dueMs = Math.Min(_dueMs, ready);
            return false;
        }

        _dueMs = Math.Min(_dueMs, sending.SentMs + options.ResendMs);
        return false;
    }

    /// <summary>Sends the next chunk that was read and not sent.</summary>
    private bool Send(Sending sending, long nowMs)
    {
        ByteBuffer frame = ports.Transport.BeginFrame();
        bool last = sending.ReadToEnd && sending.NextSent + 1 == sending.NextRead;
        SnapshotHeader header = new(sending.Group, last ? SnapshotFrame.LastFlag : (byte)0, sending.Term, sending.Transfer, sending.NextSent);
        SnapshotFrame.WriteChunk(frame, header, sending.Mark, sending.Unsent);
        if (!ports.Transport.TrySend(sending.Follower, frame))
        {
            // The link is down or full.
            sending.NotBeforeMs = nowMs + RetryMs;
            _dueMs = Math.Min(_dueMs, sending.NotBeforeMs);
            return false;
        }

        sending.NextSent++;
        sending.SentMs = nowMs;
        _dueMs = nowMs;
        return true;
    }

    private void Finish(Sending sending, bool installed)
    {
        Remove(sending);
        if (installed)
        {
            ports.Report($"Partition {sending.Group.Value - 1}: node {sending.Follower} has the state up to entry {sending.Mark.Index}.");
        }

        Loops!.Post(new SnapshotSent(sending.Group, sending.Follower, sending.Mark.Index, installed));
    }

    private void Remove(Sending? sending)
    {
        if (sending is not null && _sendings.Remove(sending))
        {
            sending.Dispose();
        }
    }

    /// <summary>One transfer. Chunks [FirstKept, NextRead) are in memory, those below NextSent were sent, and nothing counts but the follower's answer.</summary>
    private sealed class Sending(SnapshotWanted wanted, ulong transfer, IStateReader reader) : IDisposable
    {
        private readonly List<ByteBuffer> _kept = [];
        private readonly ByteBuffer _records = ByteBuffer.Rent();
        private int _cut;
        private bool _more = true;

        public GroupId Group => wanted.Group;

        public NodeId Follower => wanted.Follower;

        public Term Term => wanted.Term;

        public ulong Transfer => transfer;

        public StateMark Mark { get; } = reader.Mark;

        public ulong FirstKept { get; private set; }

        public ulong NextSent { get; set; }

        public ulong NextRead { get; private set; }

        public bool ReadToEnd => !_more && _cut == _records.Length;

        /// <summary>When the follower last got further.</summary>
        public long ProgressMs { get; set; }

        /// <summary>When a chunk was last sent.</summary>
        public long SentMs { get; set; }

        /// <summary>The link did not take a chunk; it is tried again then.</summary>
        public long NotBeforeMs { get; set; }

        public ReadOnlySpan<byte> Unsent => _kept[(int)(NextSent - FirstKept)].Written;

        /// <summary>Reads one more chunk: of about so many bytes, however long a record is.</summary>
        public int ReadChunk(int bytes)
        {
            if (_more && _cut == _records.Length)
            {
                _cut = _records.Length = 0;
                _more = reader.TryRead(_records, bytes);
            }

            int length = Math.Min(bytes * 2, _records.Length - _cut);
            ByteBuffer chunk = ByteBuffer.Rent(Math.Max(length, 1));
            chunk.Append(_records.Array.AsSpan(_cut, length));
            _cut += length;
            _kept.Add(chunk);
            NextRead++;
            return length;
        }

        public void SendAgain() => NextSent = FirstKept;

        public void Acknowledged(ulong next)
        {
            int count = (int)(next - FirstKept);
            for (int i = 0; i < count; i++)
            {
                _kept[i].Return();
            }

            _kept.RemoveRange(0, count);
            FirstKept = next;
            NextSent = Math.Max(NextSent, next);
        }

        public void Dispose()
        {
            reader.Dispose();
            _records.Return();
            foreach (ByteBuffer chunk in _kept)
            {
                chunk.Return();
            }

            _kept.Clear();
        }
    }
}
