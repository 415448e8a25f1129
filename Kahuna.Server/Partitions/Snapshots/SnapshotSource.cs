using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Buffers;

namespace Kahuna.Server.Partitions.Snapshots;

/// <summary>
/// The leader's side of snapshots: reads a state as it was at one moment, the stored one or, of an ephemeral group, a
/// view of the one in memory, and sends it in numbered chunks. A few are on their way at a time and are kept until the
/// follower has them, so that a lost link costs no more than these. Owned by the <see cref="CheckpointService"/>.
/// </summary>
internal sealed class SnapshotSource(CheckpointOptions options, CheckpointPorts ports) : IDisposable
{
    private const int RetryMs = 5;

    /// <summary>
    /// So often the follower asks for a chunk until it is sent again: chunks behind it have arrived, and it has not.
    /// </summary>
    private const int AskedMax = 3;

    private readonly List<Sending> _sendings = [];
    private readonly Dictionary<ulong, (SnapshotWanted Wanted, BeginView View)> _opening = [];
    private readonly RateLimiter _rate = new(options.BytesPerSecond);
    private readonly RateLimiter _volatileRate = new(options.VolatileBytesPerSecond);
    private ulong _transfers = options.FirstTransfer;
    private NodeTime _dueAt = NodeTime.Never;

    public ICheckpointLoops? Loops { get; set; }

    public NodeTime Due => _sendings.Count == 0 ? NodeTime.Never : _dueAt;

    public void Begin(SnapshotWanted wanted, NodeTime now)
    {
        Remove(_sendings.Find(sending => sending.Group == wanted.Group && sending.Follower == wanted.Follower));
        ulong transfer = ++_transfers;
        if (wanted.Group.IsEphemeral)
        {
            BeginView view = new(wanted.Group, Whole: true, transfer) { Epoch = wanted.Epoch };
            _opening[transfer] = (wanted, view);
            Loops!.Post(view);
        }
        else
        {
            Send(wanted, transfer, ports.Store.OpenReader(wanted.Group) is { } reader
                ? new StoredRecords(reader) : null, now);
        }
    }

    /// <summary>The loop has begun a view of a state that is in memory only, or says that there is none now.</summary>
    public void Begun(ViewBegun begun, NodeTime now)
    {
        if (_opening.Remove(begun.Transfer, out (SnapshotWanted Wanted, BeginView View) opening))
        {
            Send(opening.Wanted, begun.Transfer, begun.Mark is { } mark
                ? new LiveRecords(opening.View, mark, Loops!) : null, now);
        }
        else if (begun.Mark is not null)
        {
            Loops!.Post(new EndView(begun.Group, begun.Transfer));
        }
    }

    /// <summary>The loop has handed out records of such a view.</summary>
    public void Taken(RecordsTaken taken, NodeTime now)
    {
        if (_sendings.Find(sending =>
            sending.Transfer == taken.Transfer) is not { Records: LiveRecords records } sending)
        {
            taken.Slice.Clear();
            taken.Slice.Rows.Return();
            return;
        }

        records.Taken(taken);
        _dueAt = now;
        if (taken.Ended)
        {
            Finish(sending, installed: false);
        }
    }

    /// <summary>Ends all transfers of a group.</summary>
    public void End(GroupId group)
    {
        foreach (Sending sending in _sendings.FindAll(sending => sending.Group == group))
        {
            Remove(sending);
        }

        foreach (ulong transfer in _opening.Keys.Where(transfer => _opening[transfer].Wanted.Group == group).ToArray())
        {
            _opening.Remove(transfer);
        }
    }

    /// <summary>The follower has said how far it is.</summary>
    public void Answered(NodeId from, in SnapshotHeader answer, NodeTime now)
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
        else if ((answer.Flags & SnapshotFrame.LoadingFlag) != 0)
        {
            // No chunk is let go: sending them again asks whether the state is in place, or goes on when another one
            // is.
            sending.ProgressAt = now;
        }
        else if (answer.Chunk > sending.NextRead
            || (answer.Chunk == 0 && sending.FirstKept > 0 && sending.IsLost(now, options.ResendMs)))
        {
            // The follower has lost what it had, by a restart: it gets the state as it is stored now, from the
            // beginning.
            Remove(sending);
            Begin(sending.Wanted, now);
        }
        else if (answer.Chunk > sending.FirstKept)
        {
            sending.Acknowledged(answer.Chunk);
            sending.ProgressAt = sending.SentAt = now;
            _dueAt = now;
        }
        else if (answer.Chunk == sending.FirstKept && ++sending.Asked == AskedMax)
        {
            sending.SendAgain();
            _dueAt = now;
        }
    }

    public bool Step(NodeTime now)
    {
        if (now < Due)
        {
            return false;
        }

        _dueAt = NodeTime.Never;
        bool worked = false;
        foreach (Sending sending in _sendings.ToArray())
        {
            worked |= Step(sending, now);
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

    private void Send(SnapshotWanted wanted, ulong transfer, ISnapshotRecords? records, NodeTime now)
    {
        if (records is null)
        {
            Loops!.Post(new SnapshotSent(wanted.Group, wanted.Follower, default,
                Installed: false)
            { Epoch = wanted.Epoch });
            return;
        }

        _sendings.Add(new Sending(wanted, transfer, records) { ProgressAt = now, SentAt = now });
        _dueAt = now;
        ports.Report(
            $"{wanted.Group.Title}: the log does not reach back to node {wanted.Follower}; the state up to entry "
                + $"{records.Mark.Index} is sent to it.");
    }

    private bool Step(Sending sending, NodeTime now)
    {
        if (now - sending.ProgressAt >= options.GiveUpMs)
        {
            ports.Report(
                $"{sending.Group.Title}: node {sending.Follower} has not answered for {options.GiveUpMs / 1000} s; "
                    + $"sending the state to it ends, and begins anew when it answers again.");
            Finish(sending, installed: false);
            return true;
        }

        if (sending.FirstKept < sending.NextSent && now - sending.SentAt >= options.ResendMs)
        {
            sending.SendAgain();
        }

        if (sending.NextSent < sending.NextRead)
        {
            if (now >= sending.NotBefore)
            {
                return Send(sending, now);
            }

            _dueAt = NodeTime.Min(_dueAt, sending.NotBefore);
            return false;
        }

        if (!sending.ReadToEnd && sending.NextRead - sending.FirstKept < (ulong)options.ChunksInFlight)
        {
            RateLimiter pace = sending.Group.IsEphemeral ? _volatileRate : _rate;
            NodeTime ready = pace.ReadyAt(now);
            if (ready <= now)
            {
                if (sending.TryReadChunk(options.ChunkBytes, out int length))
                {
                    pace.Charge(length);
                    return Send(sending, now);
                }

                // The loop brings the records.
                ready = sending.SentAt + options.ResendMs;
            }

            _dueAt = NodeTime.Min(_dueAt, ready);
            return false;
        }

        _dueAt = NodeTime.Min(_dueAt, sending.SentAt + options.ResendMs);
        return false;
    }

    /// <summary>Sends the next chunk that was read and not sent.</summary>
    private bool Send(Sending sending, NodeTime now)
    {
        ByteBuffer frame = ports.Transport.BeginFrame();
        bool last = sending.ReadToEnd && sending.NextSent + 1 == sending.NextRead;
        SnapshotHeader header = new(sending.Group, last
            ? SnapshotFrame.LastFlag : (byte)0, sending.Term, sending.Transfer, sending.NextSent, sending.Wanted.Epoch);
        SnapshotFrame.WriteChunk(frame, header, sending.Mark, sending.Unsent);
        if (!ports.Transport.TrySend(sending.Follower, frame))
        {
            // The link is down or full.
            sending.NotBefore = now + RetryMs;
            _dueAt = NodeTime.Min(_dueAt, sending.NotBefore);
            return false;
        }

        InvariantException.Require(sending.NextSent >= sending.FirstKept && sending.NextSent < sending.NextRead,
            "a chunk that is sent is in memory");
        ports.Counts.AddSentBytes(sending.Unsent.Length);
        sending.NextSent++;
        sending.SentAt = now;
        _dueAt = now;
        return true;
    }

    private void Finish(Sending sending, bool installed)
    {
        Remove(sending);
        if (installed)
        {
            ports.Counts.AddSent();
            ports.Report(
                $"{sending.Group.Title}: node {sending.Follower} has the state up to entry {sending.Mark.Index}.");
        }

        Loops!.Post(new SnapshotSent(sending.Group, sending.Follower, sending.Mark.Index, installed)
        { Epoch = sending.Wanted.Epoch });
    }

    private void Remove(Sending? sending)
    {
        if (sending is not null && _sendings.Remove(sending))
        {
            sending.Dispose();
        }
    }

    /// <summary>
    /// One transfer. Chunks [FirstKept, NextRead) are in memory, those below NextSent were sent, and nothing counts but
    /// the follower's answer.
    /// </summary>
    private sealed class Sending(SnapshotWanted wanted, ulong transfer, ISnapshotRecords records) : IDisposable
    {
        private readonly List<ByteBuffer> _kept = [];
        private readonly ByteBuffer _records = ByteBuffer.Rent();
        private int _cut;
        private bool _more = true;
        private NodeTime? _lostAt;

        public SnapshotWanted Wanted => wanted;

        public ISnapshotRecords Records => records;

        public GroupId Group => wanted.Group;

        public NodeId Follower => wanted.Follower;

        public Term Term => wanted.Term;

        public ulong Transfer => transfer;

        public CheckpointMark Mark { get; } = records.Mark;

        public ulong FirstKept { get; private set; }

        public ulong NextSent { get; set; }

        public ulong NextRead { get; private set; }

        public bool ReadToEnd => !_more && _cut == _records.Length;

        /// <summary>When the follower last got further.</summary>
        public NodeTime ProgressAt { get; set; }

        /// <summary>
        /// How often the follower has asked for the first chunk that it does not have, since it got the one before.
        /// </summary>
        public int Asked { get; set; }

        /// <summary>When a chunk was last sent.</summary>
        public NodeTime SentAt { get; set; }

        /// <summary>The link did not take a chunk; it is tried again then.</summary>
        public NodeTime NotBefore { get; set; }

        public ReadOnlySpan<byte> Unsent => _kept[(int)(NextSent - FirstKept)].Written;

        /// <summary>
        /// Reads one more chunk: of about this many bytes, however long a record is. False when it is not available
        /// yet.
        /// </summary>
        public bool TryReadChunk(int bytes, out int length)
        {
            length = 0;
            if (_more && _cut == _records.Length)
            {
                _cut = _records.Length = 0;
                SnapshotRead read = records.Read(_records, bytes);
                if (read == SnapshotRead.NotYet)
                {
                    return false;
                }

                _more = read == SnapshotRead.Some;
            }

            length = Math.Min(bytes * 2, _records.Length - _cut);
            ByteBuffer chunk = ByteBuffer.Rent(Math.Max(length, 1));
            chunk.Append(_records.Array.AsSpan(_cut, length));
            _cut += length;
            InvariantException.Require(_cut <= _records.Length, "chunks are cut from what was read");
            _kept.Add(chunk);
            NextRead++;
            return true;
        }

        public void SendAgain() => NextSent = FirstKept;

        /// <summary>
        /// The follower says that it has nothing of what it had. That may be an answer that others have overtaken: it
        /// counts when the follower says so again, and has taken nothing meanwhile, after what it lacks was due to be
        /// sent again.
        /// </summary>
        public bool IsLost(NodeTime now, int resendMs)
        {
            if (_lostAt is null)
            {
                _lostAt = SentAt = now;
            }

            return now - _lostAt >= resendMs;
        }

        public void Acknowledged(ulong next)
        {
            InvariantException.Require(next > FirstKept && next <= NextRead, "a follower has chunks that were read");
            int count = (int)(next - FirstKept);
            for (int i = 0; i < count; i++)
            {
                _kept[i].Return();
            }

            _kept.RemoveRange(0, count);
            FirstKept = next;
            Asked = 0;
            _lostAt = null;
            NextSent = Math.Max(NextSent, next);
        }

        public void Dispose()
        {
            records.Dispose();
            _records.Return();
            foreach (ByteBuffer chunk in _kept)
            {
                chunk.Return();
            }

            _kept.Clear();
        }
    }
}
