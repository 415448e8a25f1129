using Kahuna.Server.Primitives;

namespace Kahuna.Server.Raft;

/// <summary>
/// Linearizable reads of a leader (thesis 6.4): reads gather under a ticket, a numbered round of heartbeats asks a
/// majority whether this is still the leader, and their answers confirm the ticket. Two rounds are in flight at most; reads that
/// come meanwhile share the next one. Owned by one <see cref="Leadership"/>; not thread-safe.
/// </summary>
internal sealed class ReadRounds
{
    private readonly Round[] _inFlight = new Round[2];
    private int _count;
    private bool _registered;
    private ulong _ticket = 1;

    /// <summary>Number of the newest round; 0 before the first. Numbers are never used again, so that an answer from an earlier leadership confirms nothing.</summary>
    public ulong Newest { get; private set; }

    /// <summary>Rounds are waiting for answers.</summary>
    public bool AnyInFlight => _count > 0;

    public bool CanOpen => _registered && _count < _inFlight.Length;

    /// <summary>Registers a read; reads registered before the next round opens share its ticket.</summary>
    public ulong Register()
    {
        _registered = true;
        return _ticket;
    }

    /// <summary>Opens a round for the reads registered so far; they may be served once <paramref name="commit"/> is applied.</summary>
    public void Open(LogIndex commit)
    {
        InvariantException.Require(CanOpen, "two read rounds are in flight at most");
        Newest++;
        _inFlight[_count++] = new Round(Newest, new ReadState(_ticket, commit));
        _ticket++;
        _registered = false;
    }

    /// <summary>A majority has confirmed <paramref name="round"/>: gives the newest read state that this confirms, if any.</summary>
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

    /// <summary>Leadership is lost: what is registered or in flight is never confirmed.</summary>
    public void Drop()
    {
        _count = 0;
        _registered = false;
        _ticket++;
    }

    private readonly record struct Round(ulong Number, ReadState State);
}
