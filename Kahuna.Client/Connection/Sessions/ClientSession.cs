using System.Numerics;
using Kahuna.Wire;
using Kahuna.Wire.Commands;

namespace Kahuna.Client.Connection.Sessions;

/// <summary>
/// One session of this client: numbers its mutations and tracks which have ended. They end in any order; the oldest
/// pending one blocks only numbers a whole window above it. Owned by one stream at a time, which calls
/// <see cref="TryTake"/> under its lock, otherwise by the <see cref="SessionPool"/>. Any thread may call the rest,
/// because numbered operations may move to other streams.
/// </summary>
/// <param name="id">A random number that no other session has.</param>
/// <param name="routes">The number of routes to track; routes beyond it always open the session anew.</param>
internal sealed class ClientSession(ulong id, int routes)
{
    private const int WordBits = 64;

    private readonly ulong[] _ended = new ulong[Limits.SessionWindow / WordBits];
    private readonly ulong[] _opened = new ulong[(routes + WordBits - 1) / WordBits];
    private ulong _next = 1;
    private ulong _low = 1;

    public ulong Id => id;

    /// <summary>A partition has forgotten the session, so it gives out no more numbers.</summary>
    public bool IsForgotten { get; private set; }

    /// <summary>Takes the next number; false while the window is full.</summary>
    public bool TryTake(out ulong number)
    {
        Advance();
        number = _next;
        if (_next - _low >= Limits.SessionWindow || IsForgotten)
        {
            return false;
        }

        _next++;
        return true;
    }

    /// <summary>
    /// How far a pending number is above the lowest pending one; sent with the command as its confirmation.
    /// </summary>
    public ushort LagOf(ulong number) => (ushort)(number - Volatile.Read(ref _low));

    /// <summary>The caller has its answer or no longer waits: no further attempt carries this number.</summary>
    public void End(ulong number) =>
        Interlocked.Or(ref _ended[(number % Limits.SessionWindow) / WordBits], 1UL << (int)(number % WordBits));

    /// <summary>The partition of a route has applied a command and knows the session.</summary>
    public void Opened(int route)
    {
        if (!IsOpen(route) && IsKnown(route))
        {
            Interlocked.Or(ref _opened[route / WordBits], 1UL << (route % WordBits));
        }
    }

    /// <summary>True when the partition of a route knows the session.</summary>
    public bool IsOpen(int route) =>
        IsKnown(route) && (Volatile.Read(ref _opened[route / WordBits]) & (1UL << (route % WordBits))) != 0;

    /// <summary>A partition no longer knows the session.</summary>
    public void Forget() => IsForgotten = true;

    private bool IsKnown(int route) => (uint)route < (uint)(_opened.Length * WordBits);

    private void Advance()
    {
        ulong low = _low;
        while (low < _next)
        {
            int place = (int)(low % WordBits);
            ref ulong word = ref _ended[(low % Limits.SessionWindow) / WordBits];
            int ended = BitOperations.TrailingZeroCount(~(Volatile.Read(ref word) >> place));
            ended = Math.Min(ended, WordBits - place);
            if (ended == 0)
            {
                break;
            }

            ulong bits = (ended == WordBits ? ulong.MaxValue : (1UL << ended) - 1) << place;
            Interlocked.And(ref word, ~bits);
            low += (uint)ended;
        }

        Volatile.Write(ref _low, low);
    }
}

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

/// <summary>
/// The sessions of one client. Each stream that sends mutations owns one and numbers them under its own lock. It
/// exchanges its session only when the window is full or a partition has forgotten the session. Returned sessions are
/// reused, so there are hardly more sessions than streams. Owned by the <see cref="ClusterConnection"/>; any thread.
/// </summary>
/// <param name="newId">Returns a new session id.</param>
/// <param name="routes">Returns the known number of routes of the cluster.</param>
internal sealed class SessionPool(Func<ulong> newId, Func<int> routes)
{
    private readonly Lock _lock = new();
    private readonly List<ClientSession> _idle = [];

    /// <summary>Takes a session with room, or a new one, and its next number.</summary>
    /// <param name="given">The caller's former session, which it returns; null for none.</param>
    /// <param name="number">The next number of the session.</param>
    public ClientSession Exchange(ClientSession? given, out ulong number)
    {
        lock (_lock)
        {
            _idle.RemoveAll(static session => session.IsForgotten);
            ClientSession? taken = null;
            number = 0;
            for (int i = 0; i < _idle.Count; i++)
            {
                if (_idle[i].TryTake(out number))
                {
                    taken = _idle[i];
                    _idle.RemoveAt(i);
                    break;
                }
            }

            Keep(given);
            if (taken is null)
            {
                taken = new ClientSession(IdempotencyKey.AsSession(newId()), routes());
                taken.TryTake(out number);
            }

            return taken;
        }
    }

    /// <summary>Takes back the session of a stream that has ended.</summary>
    public void Return(ClientSession given)
    {
        lock (_lock)
        {
            Keep(given);
        }
    }

    private void Keep(ClientSession? given)
    {
        if (given is { IsForgotten: false })
        {
            _idle.Add(given);
        }
    }
}
