using Kahuna.Wire.Commands;

namespace Kahuna.Client.Connection.Sessions;

/// <summary>
/// The session and number that all attempts of one mutation carry, so that the cluster applies it once. Part of an
/// <see cref="Operation"/>; threading as there.
/// </summary>
internal struct SessionNumber
{
    private ClientSession? _session;
    private ushort _lag;

    /// <summary>The session's id.</summary>
    public ulong SessionId { get; private set; }

    /// <summary>The number within the session; 0 for none.</summary>
    public ulong Sequence { get; private set; }

    /// <summary>The epoch that a forwarded call came with; 0 lets it run in any epoch that is open.</summary>
    public ushort GivenEpoch { get; private set; }

    /// <summary>True before the first attempt of a mutation, and for reads.</summary>
    public readonly bool IsNone => Sequence == 0;

    /// <summary>True when the number is of this client's own session.</summary>
    public readonly bool IsOwn => _session is not null;

    /// <summary>How far the number is above the lowest unconfirmed one of its session.</summary>
    public readonly ushort Lag => _session?.LagOf(Sequence) ?? _lag;

    /// <summary>Takes a number of this client's own session.</summary>
    public void Take(ClientSession session, ulong number)
    {
        _session = session;
        SessionId = session.Id;
        Sequence = number;
    }

    /// <summary>Takes a number that came with the call, from a caller with a session of its own.</summary>
    public void Give(ulong sessionId, ulong sequence, ushort lag = 0, ushort epoch = 0)
    {
        SessionId = sessionId;
        Sequence = sequence;
        _lag = lag;
        GivenEpoch = epoch;
    }

    /// <summary>
    /// The command flags for an attempt on a route: a partition that does not know the session opens it.
    /// </summary>
    public readonly CommandFlags FlagsFor(int route) =>
        IsNone ? CommandFlags.None
        : _session is null || _session.IsOpen(route) ? CommandFlags.Session
        : CommandFlags.Session | CommandFlags.Opening;

    /// <summary>The partition at the end of a route has applied the number and knows the session.</summary>
    public readonly void Opened(int route) => _session?.Opened(route);

    /// <summary>A partition no longer knows the session: no further numbers are taken from it.</summary>
    public readonly void Forget() => _session?.Forget();

    /// <summary>The caller has its answer or no longer waits: no further attempt carries this number.</summary>
    public readonly void End() => _session?.End(Sequence);

    /// <summary>Gives the number up for another one. Only when no attempt can have been applied.</summary>
    public void Drop()
    {
        End();
        _session = null;
        Sequence = 0;
    }

    /// <summary>Forgets session and number.</summary>
    public void Clear() => this = default;
}
