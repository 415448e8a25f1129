using System.Runtime.InteropServices;

namespace Kahuna.Tests.Linearizability;

/// <summary>
/// Wing and Gong's search ("Testing and verifying concurrent objects", 1993) with Lowe's cache of visited states: puts
/// operations in an order, one that may come next after the other, and takes back the latest where nothing fits. An
/// operation may come next when its call is not after the return of another answered one that is still to come. So may
/// the expiry of the key: it counts as called when the time to live is over, and has no end. Used once, by one thread.
/// </summary>
internal sealed class LinearizationSearch
{
    private readonly KeyHistory _history;
    private readonly RegisterOperation[] _operations;
    private readonly int _known;
    private readonly Substitutes _substitutes;
    private readonly int _statesMax;
    private readonly Register _register;
    private readonly EventList _events;
    private readonly StateCache _visited;
    private readonly int _knownWords;
    private readonly ulong[] _taken;
    private readonly ValueSupply _supply;
    private readonly int[] _byRevisionMax;
    private readonly long[] _revisionMax;
    private readonly Stack<Step> _steps = new();
    private Position _at;

    public LinearizationSearch(KeyHistory history, int statesMax)
    {
        _history = history;
        _operations = history.Operations;
        _known = history.Known;
        _substitutes = history.Substitutes;
        _statesMax = statesMax;
        _register = new Register(history.Values);
        _events = new EventList(_operations.AsSpan(0, _known));
        _knownWords = (_known + 63) / 64;
        int unknownWords = (_operations.Length - _known + 63) / 64;
        _taken = new ulong[_knownWords + unknownWords];
        _visited = new StateCache(_knownWords, unknownWords);
        _supply = new ValueSupply(history);
        _byRevisionMax = [.. Enumerable.Range(0, _known)];
        _revisionMax = [.. _operations.Take(_known).Select(operation => operation.RevisionBeforeMax())];
        long[] keys = [.. _revisionMax];
        Array.Sort(keys, _byRevisionMax);
    }

    /// <summary>States visited so far.</summary>
    public int States => _visited.Count;

    public Verdict Run()
    {
        if (_supply.IsMissedFromTheStart || QuickRefutation.Refutes(_history))
        {
            return Verdict.NotLinearizable;
        }

        int open = _known;
        Enter(RegisterState.NeverWritten, afterUnknown: false, strictest: 0);
        while (open > 0)
        {
            if (TryStep(out int operation))
            {
                open -= operation < _known ? 1 : 0;
            }
            else if (_steps.TryPop(out Step step))
            {
                open += step.Operation < _known ? 1 : 0;
                TakeBack(in step);
            }
            else
            {
                return Verdict.NotLinearizable;
            }

            if (_visited.Count > _statesMax)
            {
                return Verdict.Undecided;
            }
        }

        return Verdict.Linearizable;
    }

    /// <summary>
    /// Begins at a state that was not visited before. If an answered operation may come next, agrees and by its answer
    /// changes nothing, it and tells nothing new of the state, it is the only candidate: whatever order there is, the
    /// same one with this operation moved to here is as good.
    /// </summary>
    private void Enter(RegisterState state, bool afterUnknown, int strictest)
    {
        int only = -1;
        int one = _events.First;
        for (; one != EventList.End && EventList.IsCall(one); one = _events.After(one))
        {
            int operation = EventList.OperationOf(one);
            if (only < 0 && _operations[operation].ChangesNothing && MayBeAlive(operation, state) && _register.TryApply(
                _operations[operation], operation, state, out RegisterState after) && after == state)
            {
                only = operation;
            }
        }

        _at = new Position
        {
            State = state,
            AfterUnknown = afterUnknown,
            Strictest = strictest,
            FirstReturnNs = one == EventList.End ? long.MaxValue : _operations[EventList.OperationOf(one)].ReturnNs,
            Only = only,
            Event = _events.First,
            Unknown = _known,
        };
    }

    /// <summary>Linearizes the next candidate that fits. False when there is none any more.</summary>
    private bool TryStep(out int operation)
    {
        if (_at.Only >= 0)
        {
            operation = _at.Only;
            _at.Only = -1;
            _at.Event = EventList.End;
            _at.Unknown = _operations.Length;
            return TryLinearize(operation, _at.State);
        }

        while (NextCandidate(out operation, out bool expired))
        {
            if (expired
                ? TryLinearize(operation, Limited(Register.Expired(_at.State)))
                : MayBeAlive(operation, _at.State) && TryLinearize(operation, _at.State))
            {
                return true;
            }
        }

        return false;
    }

    /// <summary>Answered operations come first: one of unknown outcome is only taken to explain what follows.</summary>
    private bool NextCandidate(out int operation, out bool expired)
    {
        expired = _at.Expired;
        operation = -1;
        if (_at.Event != EventList.End && EventList.IsCall(_at.Event))
        {
            operation = EventList.OperationOf(_at.Event);
            _at.Expired = !expired && MayExpire();
            _at.Event = _at.Expired ? _at.Event : _events.After(_at.Event);
            return true;
        }

        for (; _at.Unknown < _operations.Length && _operations[_at.Unknown].CallNs <= _at.FirstReturnNs; _at.Unknown++)
        {
            if (!IsTaken(_at.Unknown))
            {
                operation = _at.Unknown;
                _at.Expired = !expired && MayExpire();
                _at.Unknown += _at.Expired ? 0 : 1;
                return true;
            }
        }

        return false;
    }

    private bool TryLinearize(int number, RegisterState before)
    {
        RegisterOperation operation = _operations[number];
        if (!_register.TryApply(operation, number, before, out RegisterState after))
        {
            return false;
        }

        after = Limited(after);
        if (IsPointless(number, before, after))
        {
            return false;
        }

        Flip(number);
        _supply.Take(operation);
        int strictest = _at.Strictest;
        while (strictest < _known && IsTaken(_byRevisionMax[strictest]))
        {
            strictest++;
        }

        // Revisions only grow: beyond what an open answer says, it can no longer be given.
        bool tooHigh = strictest < _known && after.Revision > _revisionMax[_byRevisionMax[strictest]];
        bool afterUnknown = !operation.IsKnown && before.Revision == _history.RevisionEnd;
        bool isMissed = _at.State.Value != after.Value && _supply.IsMissed(_at.State.Value);
        after = _supply.Told(after);
        if (tooHigh || isMissed || !_visited.Add(_taken, after.Packed | (afterUnknown ? 1UL : 0)))
        {
            Flip(number);
            _supply.PutBack(operation);
            return false;
        }

        _steps.Push(new Step(number, _at));
        if (number < _known)
        {
            _events.Lift(number);
        }

        Enter(after, afterUnknown, strictest);
        return true;
    }

    /// <summary>
    /// An operation of unknown outcome that changes nothing is as good left out, and so is one that is overwritten at
    /// once, unless somebody looks at revisions.
    /// </summary>
    private bool IsPointless(int number, RegisterState before, RegisterState after) =>
        (_at.AfterUnknown && _operations[number].Overwrites)
            || (number >= _known && after == before)
            || IsSpared(number, before);

    /// <summary>Another operation that may come next does the same here, and is taken first.</summary>
    private bool IsSpared(int number, RegisterState before)
    {
        foreach (int other in _substitutes.Of(number))
        {
            RegisterOperation operation = _operations[other];
            if (!IsTaken(other)
                && operation.CallNs <= _at.FirstReturnNs
                && MayBeAlive(other, before)
                && Register.ConditionsHold(operation, before))
            {
                return true;
            }
        }

        return false;
    }

    private void TakeBack(in Step step)
    {
        Flip(step.Operation);
        _supply.PutBack(_operations[step.Operation]);
        if (step.Operation < _known)
        {
            _events.PutBack(step.Operation);
        }

        _at = step.From;
    }

    /// <summary>Everything that is still to come can be after the end of the time to live.</summary>
    private bool MayExpire() =>
        _at.State.Expires && _operations[_at.State.Deadline - 1].EarliestExpiryNs <= _at.FirstReturnNs;

    /// <summary>Revisions that nobody can tell from each other count as one.</summary>
    private RegisterState Limited(RegisterState state) =>
        state.Revision >= _history.RevisionEnd
            ? state with { Revision = _history.RevisionEnd, IsAtLeast = false }
            : state;

    /// <summary>The operation can have found the key before it expired.</summary>
    private bool MayBeAlive(int operation, RegisterState state) =>
        !state.Expires || _operations[operation].CallNs <= _operations[state.Deadline - 1].LatestExpiryNs;

    private bool IsTaken(int operation) => (_taken[BitOf(operation) >> 6] >> (BitOf(operation) & 63) & 1) != 0;

    private void Flip(int operation) => _taken[BitOf(operation) >> 6] ^= 1UL << (BitOf(operation) & 63);

    /// <summary>The operations of unknown outcome begin with a word of their own.</summary>
    private int BitOf(int operation) => operation < _known ? operation : (_knownWords * 64) + operation - _known;

    /// <summary>A state of the search, and which candidates were tried there.</summary>
    [StructLayout(LayoutKind.Auto)]
    private struct Position
    {
        public RegisterState State;

        /// <summary>The latest operation is of unknown outcome, and nothing has looked at what it did.</summary>
        public bool AfterUnknown;

        /// <summary>All answers that bound the revision more strictly than this one have been given.</summary>
        public int Strictest;

        /// <summary>The first return that is still to come.</summary>
        public long FirstReturnNs;

        /// <summary>The one candidate, or -1.</summary>
        public int Only;

        /// <summary>The next candidate among the answered operations.</summary>
        public int Event;

        /// <summary>The next candidate among the others.</summary>
        public int Unknown;

        /// <summary>The next candidate was tried on the key as it is, and is to be tried on the expired one.</summary>
        public bool Expired;
    }

    /// <summary>A linearized operation, and where the search goes on when it is taken back.</summary>
    [StructLayout(LayoutKind.Auto)]
    private readonly record struct Step(int Operation, Position From);
}
