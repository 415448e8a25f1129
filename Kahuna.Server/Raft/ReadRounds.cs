using Kahuna.Server.Primitives;

namespace Kahuna.Server.Raft;

/// <summary>
/// A leader's linearizable reads (thesis 6.4). Reads gather under a ticket; a numbered round of heartbeats asks a
/// majority whether this node still leads; their replies confirm the ticket. At most two rounds are in flight, and
/// later reads share the next one. Owned by one <see cref="Leadership"/>; not thread-safe.
/// </summary>
internal sealed class ReadRounds
{
    private readonly Round[] _inFlight = new Round[2];
    private int _count;
    private bool _registered;
    private ulong _ticket = 1;

    /// <summary>
    /// Number of the newest round; 0 before the first. Numbers are never reused, so replies to an earlier leadership
    /// confirm nothing.
    /// </summary>
    public ulong Newest { get; private set; }

    /// <summary>At least one round awaits replies.</summary>
    public bool AnyInFlight => _count > 0;

    public bool CanOpen => _registered && _count < _inFlight.Length;

    /// <summary>Reads are registered, and no round was opened for them yet.</summary>
    public bool HasRegistered => _registered;

    /// <summary>Registers a read and returns its ticket, which all reads share until the next round opens.</summary>
    public ulong Register()
    {
        _registered = true;
        return _ticket;
    }

    /// <summary>
    /// Opens a round for the registered reads. Once confirmed, they may be served when <paramref name="commit"/> is
    /// applied.
    /// </summary>
    public void Open(LogIndex commit)
    {
        InvariantException.Require(CanOpen, "two read rounds are in flight at most");
        Newest++;
        _inFlight[_count++] = new Round(Newest, new ReadState(_ticket, commit));
        _ticket++;
        _registered = false;
    }

    /// <summary>Opens a round for no read: what a majority answers to it prolongs a lease.</summary>
    public void OpenForLease() => Newest++;

    /// <summary>
    /// This node still leads: all reads, registered and in flight, may be served when <paramref name="commit"/> is
    /// applied.
    /// </summary>
    public ReadState ConfirmAll(LogIndex commit)
    {
        _count = 0;
        _registered = false;
        return new ReadState(_ticket++, commit);
    }

    /// <summary>
    /// A majority has confirmed <paramref name="round"/>. Returns the newest read state that this confirms, if any.
    /// </summary>
    public bool TryConfirm(ulong round, out ReadState confirmed)
    {
        confirmed = default;
        int done = 0;
        while (done < _count && _inFlight[done].Number <= round)
        {
            confirmed = _inFlight[done++].State;
        }

        for (int i = done; i < _count; i++)
        {
            _inFlight[i - done] = _inFlight[i];
        }

        _count -= done;
        return done > 0;
    }

    /// <summary>Drops all reads after leadership was lost: they are never confirmed.</summary>
    public void Drop()
    {
        _count = 0;
        _registered = false;
        _ticket++;
    }

    private readonly record struct Round(ulong Number, ReadState State);
}
