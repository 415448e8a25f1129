using System.Numerics;
using Kahuna.Client.Wire;

namespace Kahuna.Client.Connection.Sessions;

/// <summary>
/// One session of this client: numbers its mutations, and knows up to where they have ended. A window of numbers, not a queue: they end in any order, and the lowest that has not
/// ended holds back only what is a whole window above it. Owned by one stream at a time, which calls <see cref="TryTake"/> under its lock, else by the <see cref="SessionPool"/>; the rest is for any
/// thread: what it has numbered may go on over other streams.
/// </summary>
/// <param name="id">A random number that no other session has.</param>
/// <param name="routes">Partitions and levels that can be told apart; others are always opened anew.</param>
internal sealed class ClientSession(ulong id, int routes)
{
    private const int WordBits = 64;

    private readonly ulong[] _ended = new ulong[Limits.SessionWindow / WordBits];
    private readonly ulong[] _opened = new ulong[(routes + WordBits - 1) / WordBits];
    private ulong _next = 1;
    private ulong _low = 1;

    public ulong Id => id;

    /// <summary>A partition has forgotten it: it numbers nothing any more.</summary>
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

    /// <summary>How far a number that has not ended is above the lowest that has not: what its command confirms.</summary>
    public ushort LagOf(ulong number) => (ushort)(number - Volatile.Read(ref _low));

    /// <summary>The caller has its answer, or waits for none any more: no further attempt is made under this number.</summary>
    public void End(ulong number) =>
        Interlocked.Or(ref _ended[(number % Limits.SessionWindow) / WordBits], 1UL << (int)(number % WordBits));

    /// <summary>A partition has carried out a command of this session, and knows it.</summary>
    public void Opened(int route)
    {
        if (!IsOpen(route) && IsKnown(route))
        {
            Interlocked.Or(ref _opened[route / WordBits], 1UL << (route % WordBits));
        }
    }

    /// <summary>The partition knows the session.</summary>
    public bool IsOpen(int route) => IsKnown(route) && (Volatile.Read(ref _opened[route / WordBits]) & (1UL << (route % WordBits))) != 0;

    /// <summary>A partition says that it does not know the session any more.</summary>
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
