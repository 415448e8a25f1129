namespace Kahuna.Benchmark.Pacing;

/// <summary>
/// Hands the due requests of an open loop to its consumers, in order. What no consumer has taken yet is the backlog:
/// two numbers, whatever its length. Thread-safe: one pacing thread releases, any number of consumers claim.
/// </summary>
internal sealed class PermitGate
{
    /// <summary>What a claim returns when there is nothing more to do.</summary>
    public const long Finished = -1;

    private readonly Lock _gate = new();
    private readonly PermitWaiter[] _idle;
    private int _idleCount;
    private long _released;
    private long _claimed;
    private bool _closed;

    public PermitGate(int consumers) => _idle = new PermitWaiter[consumers];

    /// <summary>Requests that are due and not taken.</summary>
    public long Backlog
    {
        get
        {
            lock (_gate)
            {
                return _released - _claimed;
            }
        }
    }

    /// <summary>
    /// Takes the number of the next due request, waiting until there is one; <see cref="Finished"/> after the end.
    /// </summary>
    public ValueTask<long> ClaimAsync(PermitWaiter waiter)
    {
        lock (_gate)
        {
            if (_claimed < _released)
            {
                return new ValueTask<long>(_claimed++);
            }

            if (_closed)
            {
                return new ValueTask<long>(Finished);
            }

            _idle[_idleCount++] = waiter;
            return waiter.Begin();
        }
    }

    /// <summary>
    /// Makes all requests below <paramref name="upTo"/> due and wakes as many idle consumers, the last one to fall idle
    /// first.
    /// </summary>
    public void Release(long upTo)
    {
        lock (_gate)
        {
            _released = Math.Max(_released, upTo);
        }

        while (TakeIdle(out PermitWaiter? waiter, out long number))
        {
            waiter!.Complete(number);
        }
    }

    /// <summary>Says that nothing more becomes due: consumers finish what is, then end.</summary>
    public void Close()
    {
        lock (_gate)
        {
            _closed = true;
        }

        while (TakeIdle(out PermitWaiter? waiter, out long number))
        {
            waiter!.Complete(number);
        }
    }

    /// <summary>Ends the consumers and returns how many due requests nobody took.</summary>
    public long Abandon()
    {
        long left;
        lock (_gate)
        {
            left = _released - _claimed;
            _claimed = _released;
        }

        Close();
        return left;
    }

    private bool TakeIdle(out PermitWaiter? waiter, out long number)
    {
        lock (_gate)
        {
            number = _claimed < _released ? _claimed : Finished;
            if (_idleCount == 0 || (number == Finished && !_closed))
            {
                waiter = null;
                return false;
            }

            _claimed += number == Finished ? 0 : 1;
            waiter = _idle[--_idleCount];
            _idle[_idleCount] = null!;
            return true;
        }
    }
}
