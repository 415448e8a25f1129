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
    private long _dueMs = long.MaxValue;

    public ICheckpointLoops? Loops { get; set; }

    public long DueMs => _sendings.Count == 0 ? long.MaxValue : _dueMs;

    public void Begin(SnapshotWanted wanted, long nowMs)
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
                ? new StoredRecords(reader) : null, nowMs);
        }
    }

    /// <summary>The loop has begun a view of a state that is in memory only, or says that there is none now.</summary>
    public void Begun(ViewBegun begun, long nowMs)
    {
        if (_opening.Remove(begun.Transfer, out (SnapshotWanted Wanted, BeginView View) opening))
        {
            Send(opening.Wanted, begun.Transfer, begun.Mark is { } mark
                ? new LiveRecords(opening.View, mark, Loops!) : null, nowMs);
        }
        else if (begun.Mark is not null)
        {
            Loops!.Post(new EndView(begun.Group, begun.Transfer));
        }
    }

    /// <summary>The loop has handed out records of such a view.</summary>
    public void Taken(RecordsTaken taken, long nowMs)
    {
        if (_sendings.Find(sending =>
            sending.Transfer == taken.Transfer) is not { Records: LiveRecords records } sending)
        {
            taken.Slice.Clear();
            taken.Slice.Rows.Return();
            return;
        }

        records.Taken(taken);
        _dueMs = nowMs;
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
        else if ((answer.Flags & SnapshotFrame.LoadingFlag) != 0)
        {
            // No chunk is let go: sending them again asks whether the state is in place, or goes on when another one
            // is.
            sending.ProgressMs = nowMs;
        }
        else if (answer.Chunk > sending.NextRead
            || (answer.Chunk == 0 && sending.FirstKept > 0 && sending.IsLost(nowMs, options.ResendMs)))
        {
            // The follower has lost what it had, by a restart: it gets the state as it is stored now, from the
            // beginning.
            Remove(sending);
            Begin(sending.Wanted, nowMs);
        }
        else if (answer.Chunk > sending.FirstKept)
        {
            sending.Acknowledged(answer.Chunk);
            sending.ProgressMs = sending.SentMs = nowMs;
            _dueMs = nowMs;
        }
        else if (answer.Chunk == sending.FirstKept && ++sending.Asked == AskedMax)
        {
            sending.SendAgain();
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

    private void Send(SnapshotWanted wanted, ulong transfer, ISnapshotRecords? records, long nowMs)
    {
        if (records is null)
        {
            Loops!.Post(new SnapshotSent(wanted.Group, wanted.Follower, default,
                Installed: false)
            { Epoch = wanted.Epoch });
            return;
        }

        _sendings.Add(new Sending(wanted, transfer, records) { ProgressMs = nowMs, SentMs = nowMs });
        _dueMs = nowMs;
        ports.Report(
            $"{wanted.Group.Title}: the log does not reach back to node {wanted.Follower}; the state up to entry "
                + $"{records.Mark.Index} is sent to it.");
    }

    private bool Step(Sending sending, long nowMs)
    {
        if (nowMs - sending.ProgressMs >= options.GiveUpMs)
        {
            ports.Report(
                $"{sending.Group.Title}: node {sending.Follower} has not answered for {options.GiveUpMs / 1000} s; "
                    + $"sending the state to it ends, and begins anew when it answers again.");
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
            RateLimiter pace = sending.Group.IsEphemeral ? _volatileRate : _rate;
            long ready = pace.ReadyMs(nowMs);
            if (ready <= nowMs)
            {
                if (sending.TryReadChunk(options.ChunkBytes, out int length))
                {
                    pace.Charge(length);
                    return Send(sending, nowMs);
                }

                // The loop brings the records.
                ready = sending.SentMs + options.ResendMs;
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
        SnapshotHeader header = new(sending.Group, last
            ? SnapshotFrame.LastFlag : (byte)0, sending.Term, sending.Transfer, sending.NextSent, sending.Wanted.Epoch);
        SnapshotFrame.WriteChunk(frame, header, sending.Mark, sending.Unsent);
        if (!ports.Transport.TrySend(sending.Follower, frame))
        {
            // The link is down or full.
            sending.NotBeforeMs = nowMs + RetryMs;
            _dueMs = Math.Min(_dueMs, sending.NotBeforeMs);
            return false;
        }

        InvariantException.Require(sending.NextSent >= sending.FirstKept && sending.NextSent < sending.NextRead,
            "a chunk that is sent is in memory");
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
            ports.Report(
                $"{sending.Group.Title}: node {sending.Follower} has the state up to entry {sending.Mark.Index}.");
        }

        Loops!.Post(new SnapshotSent(sending.Group, sending.Follower, sending.Mark.Index,
            installed)
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
        private long? _lostMs;

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
        public long ProgressMs { get; set; }

        /// <summary>
        /// How often the follower has asked for the first chunk that it does not have, since it got the one before.
        /// </summary>
        public int Asked { get; set; }

        /// <summary>When a chunk was last sent.</summary>
        public long SentMs { get; set; }

        /// <summary>The link did not take a chunk; it is tried again then.</summary>
        public long NotBeforeMs { get; set; }

        public ReadOnlySpan<byte> Unsent => _kept[(int)(NextSent - FirstKept)].Written;

        /// <summary>
        /// Reads one more chunk: of about so many bytes, however long a record is. False when it is not to be had yet.
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
        public bool IsLost(long nowMs, int resendMs)
        {
            if (_lostMs is null)
            {
                _lostMs = SentMs = nowMs;
            }

            return nowMs - _lostMs >= resendMs;
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
            _lostMs = null;
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
