using System.Numerics;
using Kahuna.Wire;

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
