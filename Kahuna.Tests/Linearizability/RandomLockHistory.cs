
namespace Kahuna.Tests.Linearizability;

/// <summary>
/// Makes up holdings of one lock that are as promised: callers wait in a queue for a lock that is granted in order,
/// learn of the grant a little later, and believe in it until some moment before its true end. Some do not wait, some
/// answers get lost, some holders go on for ever, and holders write with their token, also when it is too late. Times
/// are ns. The seed decides everything. Owned by a test.
/// </summary>
internal sealed class RandomLockHistory(int seed, RandomLockHistory.Shape shape)
{
    private readonly Random _random = new(seed);
    private readonly PriorityQueue<Action, (long AtNs, int Order)> _events = new();
    private readonly Queue<Claim> _waiting = [];
    private readonly List<Claim> _holding = [];
    private readonly List<HistoryOperation> _holdings = [];
    private readonly List<HistoryOperation> _writes = [];
    private long _nowNs;
    private long _token;
    private int _processes;
    private int _calls;
    private int _planned;

    /// <summary>The calls for the lock, and the writes with its tokens, each with a process of its own.</summary>
    public (List<HistoryOperation> Holdings, List<HistoryOperation> Writes) Create()
    {
        for (int i = 0; i < shape.Callers; i++)
        {
            At(_random.Next(20), Call);
        }

        while (_events.TryDequeue(out Action? action, out (long AtNs, int Order) moment))
        {
            _nowNs = moment.AtNs;
            action();
        }

        _holdings.AddRange(_waiting.Select(claim => Operation(claim) with { Outcome = HistoryOutcome.Unknown }));
        return (_holdings, _writes);
    }

    private void At(long afterNs, Action action) => _events.Enqueue(action, (_nowNs + afterNs, _planned++));

    private void Call()
    {
        if (_calls == shape.Holdings)
        {
            return;
        }

        _calls++;
        Claim claim = new(_processes++, _nowNs, DrawMode());
        At(_random.Next(5), () => Arrive(claim));
    }

    private LockMode DrawMode() =>
        shape.Permits > 0
            ? LockMode.Permit
            : _random.Next(100) < shape.SharedPercent
            ? LockMode.Shared
            : LockMode.Exclusive;

    private void Arrive(Claim claim)
    {
        bool isFree = _waiting.Count == 0 && IsFree(claim.Mode);
        if (!isFree && _random.Next(10) == 0)
        {
            _holdings.Add(Operation(claim) with { Outcome = HistoryOutcome.Fail, ReturnNs = _nowNs + _random.Next(5) });
            At(_random.Next(5, 20), Call);
            return;
        }

        claim.Token = ++_token;
        _waiting.Enqueue(claim);
        Grant();
    }

    private bool IsFree(LockMode mode) =>
        _holding.Count == 0
            || (_holding[0].Mode == mode
                && (mode == LockMode.Shared || (mode == LockMode.Permit && _holding.Count < shape.Permits)));

    private void Grant()
    {
        while (_waiting.TryPeek(out Claim? next) && IsFree(next.Mode))
        {
            _waiting.Dequeue();
            _holding.Add(next);
            Hold(next);
        }
    }

    private void Hold(Claim claim)
    {
        bool goesOn = _calls == shape.Holdings && _random.Next(10) == 0;
        long endNs = goesOn ? long.MaxValue : _nowNs + _random.Next(1, 30);
        long toldNs = _nowNs + _random.Next(10);
        bool isTold = toldNs <= endNs && _random.Next(100) >= shape.UnknownPercent;
        long untilNs = goesOn
            ? long.MaxValue
            : _random.Next(3) == 0
            ? endNs
            : _random.NextInt64(Math.Min(toldNs, endNs), endNs + 1);
        _holdings.Add(isTold
            ? Operation(claim) with
            {
                ReturnNs = toldNs,
                Outcome = HistoryOutcome.Ok,
                Result =
                    new OperationResult { Affirmed = true, Token = claim.Token, UntilNs = goesOn ? null : untilNs },
            }
            : Operation(claim) with
            {
                Outcome = HistoryOutcome.Unknown,
                ReturnNs = _random.Next(2) == 0 ? null : toldNs + 100,
            });
        if (isTold && _random.Next(100) < shape.WritePercent)
        {
            Write(claim.Token, toldNs, endNs);
        }

        if (!goesOn)
        {
            At(endNs - _nowNs, () => End(claim));
        }
    }

    private void End(Claim claim)
    {
        _holding.Remove(claim);
        Grant();
        At(_random.Next(1, 10), Call);
    }

    /// <summary>It counts when it takes effect before the end of the grant.</summary>
    private void Write(long token, long fromNs, long endNs)
    {
        long callNs = fromNs + _random.Next(30);
        long effectNs = callNs + _random.Next(10);
        HistoryOutcome outcome = _random.Next(100) < shape.UnknownPercent
            ? HistoryOutcome.Unknown
            : effectNs < endNs
            ? HistoryOutcome.Ok
            : HistoryOutcome.Fail;
        _writes.Add(new HistoryOperation
        {
            Process = _processes++,
            Key = $"k{_writes.Count / 100}",
            Kind = OperationKind.Set,
            Arguments = new OperationArguments { Value = $"v{token}", Fence = new LockFence(Recorded.Lock, token) },
            CallNs = callNs,
            ReturnNs = effectNs + _random.Next(10),
            Outcome = outcome,
            Result = outcome == HistoryOutcome.Ok
                ? new OperationResult { Affirmed = true }
                : OperationResult.Unconstrained,
        });
    }

    private HistoryOperation Operation(Claim claim) => new()
    {
        Process = claim.Process,
        Key = Recorded.Lock,
        Kind = OperationKind.Acquire,
        Arguments = new OperationArguments { Mode = claim.Mode, Permits = shape.Permits },
        CallNs = claim.CallNs,
        Outcome = HistoryOutcome.Unknown,
    };

    /// <summary>What the histories are like. Percentages are of the operations.</summary>
    internal sealed record Shape
    {
        /// <summary>Calls for the lock.</summary>
        public required int Holdings { get; init; }

        /// <summary>So many call, one call at a time each.</summary>
        public int Callers { get; init; } = 5;

        /// <summary>How many may hold a semaphore; 0: it is a lock.</summary>
        public int Permits { get; init; }

        public int SharedPercent { get; init; }

        public int UnknownPercent { get; init; } = 10;

        public int WritePercent { get; init; } = 50;
    }

    private sealed record Claim(int Process, long CallNs, LockMode Mode)
    {
        public long Token { get; set; }
    }
}
