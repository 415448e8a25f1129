using Kahuna.Client.Wire.Buffers;
using Kahuna.Client.Wire.Commands;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Partitions;

/// <summary>
/// A leader's writes on their way to being applied, in order: first those that wait to be proposed (their commands are
/// already laid out as entry payloads), then those that are proposed and wait for their entry to be applied. Owned by a partition.
/// </summary>
internal sealed class ProposalQueue(int entryBytesMax)
{
    private readonly WorkBuffer _room = new(64 * 1024);
    private readonly Ring<Span> _spans = new(16);
    private readonly Ring<PendingReply> _replies = new(1024);
    private readonly Ring<PendingEntry> _entries = new(64);
    private int _openAt = -1;
    private int _openCount;
    private long _queuedBytes;

    private ByteBuffer Payloads => _room.Bytes;

    /// <summary>Writes that wait to be proposed.</summary>
    public int Queued { get; private set; }

    /// <summary>Writes that are proposed and not yet answered.</summary>
    public int Proposed => _replies.Count - Queued;

    /// <summary>Bytes queued and proposed.</summary>
    public long Bytes { get; private set; }

    /// <summary>Queues one write; its command is copied. A null sink is a write of the partition itself, which nobody waits for.</summary>
    public void Add(ReadOnlySpan<byte> command, ReplySink? sink, uint number)
    {
        if (_openAt >= 0 && Payloads.Length - _openAt + command.Length > entryBytesMax)
        {
            CloseSpan();
        }

        if (_openAt < 0)
        {
            _openAt = Payloads.Length;
            CommandEntry.Begin(Payloads);
        }

        CommandEntry.Add(Payloads, command);
        _openCount++;
        Queued++;
        Bytes += CommandEntry.ItemHeaderBytes + command.Length;
        _queuedBytes += CommandEntry.ItemHeaderBytes + command.Length;
        _replies.Add(new PendingReply(sink, number, Command.IsNumbered(command)));
    }

    /// <summary>The next payload to propose, stamped with <paramref name="timeMs"/>; false when none waits.</summary>
    public bool TryPeek(long timeMs, out ReadOnlySpan<byte> payload)
    {
        payload = default;
        if (_spans.Count == 0)
        {
            if (_openAt < 0)
            {
                return false;
            }

            CloseSpan();
        }

        ref Span span = ref _spans[0];
        CommandEntry.End(Payloads, span.At, timeMs, span.Count);
        payload = Payloads.Array.AsSpan(span.At, span.Length);
        return true;
    }

    /// <summary>The peeked payload was proposed at this place.</summary>
    public void MarkProposed(LogIndex index, Term term)
    {
        Span span = _spans.Take();
        Queued -= span.Count;
        int bytes = span.Length - CommandEntry.HeaderBytes;
        _queuedBytes -= bytes;
        _entries.Add(new PendingEntry(index, term, span.Count, bytes));
        if (_spans.Count == 0 && _openAt < 0)
        {
            _room.Clear();
        }
    }

    /// <summary>
    /// Forgets what can never be committed now that the entry at <paramref name="index"/> is, with this term: another entry at this index, and every entry of an earlier
    /// term behind it, because terms never decrease along a log. <paramref name="answer"/> gets each reply.
    /// </summary>
    public void DropReplaced(LogIndex index, Term term, Action<PendingReply> answer)
    {
        while (_entries.Count > 0 && (_entries[0].Term < term || (_entries[0].Index == index && _entries[0].Term != term)))
        {
            DropEntry(answer);
        }
    }

    /// <summary>Looks whether the committed entry at <paramref name="index"/> is awaited, and by how many replies. After <see cref="DropReplaced"/>.</summary>
    public bool TryTake(LogIndex index, out int replies)
    {
        replies = 0;
        if (_entries.Count == 0 || _entries[0].Index != index)
        {
            return false;
        }

        PendingEntry entry = _entries.Take();
        Bytes -= entry.Bytes;
        replies = entry.Count;
        return true;
    }

    /// <summary>A tick of the owner's clock.</summary>
    public void Tick() => _room.Tick();

    /// <summary>The next reply of what was proposed.</summary>
    public PendingReply TakeReply() => _replies.Take();

    /// <summary>Forgets what is queued and not proposed; <paramref name="answer"/> gets each reply.</summary>
    public void DropQueued(Action<PendingReply> answer)
    {
        int proposed = Proposed;
        for (int i = proposed; i < _replies.Count; i++)
        {
            answer(_replies[i]);
        }

        _replies.RemoveLast(Queued);
        Queued = 0;
        Bytes -= _queuedBytes;
        _queuedBytes = 0;
        while (_spans.Count > 0)
        {
            _spans.Take();
        }

        _openAt = -1;
        _openCount = 0;
        _room.Clear();
    }

    /// <summary>
    /// Gives up the numbered writes among those that are proposed: <paramref name="answer"/> gets each reply, once, and nobody waits for them any more. Their
    /// entries stay in line, because they may still be committed.
    /// </summary>
    public void ReleaseNumbered(Action<PendingReply> answer)
    {
        for (int i = 0; i < Proposed; i++)
        {
            ref PendingReply reply = ref _replies[i];
            if (reply is { IsNumbered: true, Sink: not null })
            {
                answer(reply);
                reply = default;
            }
        }
    }

    /// <summary>
    /// Forgets what is proposed; <paramref name="answer"/> gets each reply, also of an entry that was taken and broke off in the middle. What is queued stays.
    /// </summary>
    public void DropProposed(Action<PendingReply> answer)
    {
        while (_entries.Count > 0)
        {
            Bytes -= _entries.Take().Bytes;
        }

        while (Proposed > 0)
        {
            answer(_replies.Take());
        }
    }

    private void DropEntry(Action<PendingReply> answer)
    {
        PendingEntry entry = _entries.Take();
        Bytes -= entry.Bytes;
        for (int i = 0; i < entry.Count; i++)
        {
            answer(_replies.Take());
        }
    }

    private void CloseSpan()
    {
        _spans.Add(new Span(_openAt, Payloads.Length - _openAt, _openCount));
        _openAt = -1;
        _openCount = 0;
    }

    /// <summary>Who waits for a write, and whether the caller may repeat it under the number that it has.</summary>
    internal readonly record struct PendingReply(ReplySink? Sink, uint Number, bool IsNumbered);

    private readonly record struct Span(int At, int Length, int Count);

    private readonly record struct PendingEntry(LogIndex Index, Term Term, int Count, int Bytes);
}
