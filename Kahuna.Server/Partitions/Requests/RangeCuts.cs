using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State;
using Kahuna.Server.State.KeyValues;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Partitions.Requests;

/// <summary>
/// A leader's open cuts (docs/adr/0036-consistent-scans.md). They are in its memory only and end with its leadership.
/// The number of a cut has the leader's term, so that no other leader takes it for one of its own. Owned by a
/// partition's <see cref="PendingRequests"/>; not thread-safe.
/// </summary>
internal sealed class RangeCuts(RequestParts parts)
{
    /// <summary>
    /// Open cuts of a partition: each one costs every write of its range a look, and the first change of a key a copy.
    /// </summary>
    public const int CutsMax = 16;

    /// <summary>Open cuts of one client, or connection: two clients leave no room for a third at the worst.</summary>
    public const int CutsPerClientMax = 8;

    /// <summary>A cut ends when nobody has asked about it for this long.</summary>
    public const int IdleMsMax = 10_000;

    /// <summary>A cut ends after this long in any case.</summary>
    public const int LifeMsMax = 60_000;

    private const int TermShift = 32;

    private readonly TurnClock _clock = parts.Clock;
    private readonly AppliedState _applied = parts.Applied;
    private readonly CutBudget _budget = new();
    private readonly List<OpenCut> _cuts = [];
    private long _lastNumber;

    /// <summary>Open cuts.</summary>
    public int Count => _cuts.Count;

    /// <summary>Whether proposals wait.</summary>
    public ProposalHold Hold { get; } = new(parts.Clock);

    /// <summary>True for commands that are answered here instead of by the state.</summary>
    public static bool Concerns(scoped in Command command) =>
        CommandKinds.Has(command.Kind, CommandTraits.ConcernsCut)
            || (command.Kind == CommandKind.KeyRange && command.Has(CommandFlags.IfRevision));

    /// <summary>A cut is asked for: proposals are held from now on, if the client wants that and may.</summary>
    public void Accept(RaftCore core, ReadOnlySpan<byte> bytes)
    {
        long first = (long)(core.Term.Value & int.MaxValue) << TermShift;
        _lastNumber = Math.Max(_lastNumber, first);
        if (Holds(bytes))
        {
            Hold.Begin(core.LastIndex);
        }
    }

    /// <summary>
    /// A cut that is taken now would not have what was proposed before the hold, and could not be confirmed.
    /// </summary>
    public bool IsEarly(scoped in Command command) =>
        command.Kind == CommandKind.CutOpen && Hold.IsOn && _applied.Index < Hold.Index
            && new RangeRequest(in command).Has(RangeFlags.Hold);

    /// <summary>Appends the outcome of a command that concerns a cut.</summary>
    public void Read(ReplySink sink, scoped in Command command, ByteBuffer outcome)
    {
        RangeRequest asked = new(in command);
        if (command.Kind == CommandKind.CutOpen)
        {
            Open(sink, in asked, outcome);
            return;
        }

        OpenCut? open = Find(asked.Cut);
        if (command.Kind == CommandKind.CutEnd)
        {
            Remove(open);
            new Outcome(OutcomeStatus.Found).Write(outcome);
        }
        else if (open is null or { Cut.IsOver: true })
        {
            new Outcome(OutcomeStatus.ScanExpired).Write(outcome);
        }
        else if (!open.Cut.Covers(in asked))
        {
            Outcome.WriteError(outcome, OutcomeStatus.InvalidArgument, "the page is not part of the scan");
        }
        else
        {
            open.Used = _clock.Now;
            if (command.Kind == CommandKind.CutConfirm)
            {
                // What a transaction holds to write may be written elsewhere already: the cut would show half of it.
                bool isCurrent = open.Cut.IsCurrent(_applied.Time)
                    && !_applied.State.KeyValues.Prepared.HoldsToWrite(asked.Start, asked.End);
                Release(open);
                new Outcome(isCurrent ? OutcomeStatus.Found : OutcomeStatus.ConditionFailed).Write(outcome);
            }
            else
            {
                _applied.State.KeyValues.ReadCut(open.Cut, in asked, outcome);
            }
        }
    }

    /// <summary>A tick: ends cuts that were open or idle for too long, or are over.</summary>
    public void Tick()
    {
        for (int i = _cuts.Count - 1; i >= 0; i--)
        {
            OpenCut open = _cuts[i];
            if (open.Cut.IsOver
                || _clock.Now - open.Used > IdleMsMax
                || _clock.Now - open.Opened > LifeMsMax)
            {
                Remove(open);
            }
        }
    }

    /// <summary>This node leads no more, or stops.</summary>
    public void Drop()
    {
        Hold.Reset();
        while (_cuts.Count > 0)
        {
            Remove(_cuts[^1]);
        }
    }

    private void Open(ReplySink sink, scoped in RangeRequest asked, ByteBuffer outcome)
    {
        bool isHeld = asked.Has(RangeFlags.Hold) && Hold.IsOn;
        if (_cuts.Count == CutsMax)
        {
            Remove(_cuts.Find(static open => open.Sink.IsClosed));
        }

        int own = 0;
        foreach (OpenCut other in _cuts)
        {
            own += other.Sink == sink ? 1 : 0;
        }

        if (_cuts.Count == CutsMax || own == CutsPerClientMax)
        {
            if (isHeld)
            {
                Hold.Release();
            }

            Outcome.WriteError(outcome, OutcomeStatus.Busy, own == CutsPerClientMax
                ? "The client has the most consistent scans under way that the partition allows; try again later."
                : "The partition has the most consistent scans under way that it allows; try again later.");
            return;
        }

        RangeCut cut = _applied.State.KeyValues.OpenCut(in asked, _applied.Time, _budget);
        OpenCut open = new(++_lastNumber, sink, cut, _clock.Now) { IsHolding = isHeld };
        _cuts.Add(open);
        new Outcome(OutcomeStatus.Found, isHeld ? 0 : Hold.RestMs, open.Number).Write(outcome);
    }

    private static bool Holds(ReadOnlySpan<byte> bytes) =>
        Command.TryRead(bytes, out Command command) && new RangeRequest(in command).Has(RangeFlags.Hold);

    private OpenCut? Find(long number)
    {
        foreach (OpenCut open in _cuts)
        {
            if (open.Number == number)
            {
                return open;
            }
        }

        return null;
    }

    private void Remove(OpenCut? open)
    {
        if (open is not null)
        {
            Release(open);
            open.Cut.Dispose();
            _cuts.Remove(open);
        }
    }

    private void Release(OpenCut open)
    {
        if (open.IsHolding)
        {
            open.IsHolding = false;
            Hold.Release();
        }
    }

    /// <summary>A cut with who opened it.</summary>
    private sealed class OpenCut(long number, ReplySink sink, RangeCut cut, NodeTime opened)
    {
        public long Number { get; } = number;

        public ReplySink Sink { get; } = sink;

        public RangeCut Cut { get; } = cut;

        public NodeTime Opened { get; } = opened;

        public NodeTime Used { get; set; } = opened;

        /// <summary>Proposals wait for its confirmation.</summary>
        public bool IsHolding { get; set; }
    }
}

/// <summary>
/// A pause of a leader's proposals, so that a busy range stands still between the opening of a cut and its
/// confirmation. It is an aid, and nothing rests on it: it lasts for a few ms at most and takes at most a tenth of the
/// time, whatever clients ask for. Owned by <see cref="RangeCuts"/>; not thread-safe.
/// </summary>
internal sealed class ProposalHold(TurnClock clock)
{
    /// <summary>The longest pause: a few round trips within a data centre.</summary>
    public const int MsMax = 5;

    /// <summary>For each ms of a pause there is none for this many.</summary>
    private const int RestPerMs = 9;

    private NodeTime _since;
    private NodeTime _restEnd;
    private int _cuts;
    private bool _isOn;

    /// <summary>Nothing is proposed now.</summary>
    public bool IsOn
    {
        get
        {
            if (_isOn && clock.Now - _since >= MsMax)
            {
                End();
            }

            return _isOn;
        }
    }

    /// <summary>The last entry that was proposed before.</summary>
    public LogIndex Index { get; private set; }

    /// <summary>Until the next pause is possible, in ms.</summary>
    public long RestMs => Math.Max(0, _restEnd - clock.Now);

    /// <summary>A cut wants the pause: it begins, or serves one more cut, unless the last one was just now.</summary>
    public void Begin(LogIndex last)
    {
        if (IsOn)
        {
            _cuts++;
        }
        else if (clock.Now >= _restEnd)
        {
            (_isOn, _since, _cuts, Index) = (true, clock.Now, 1, last);
        }
    }

    /// <summary>A cut needs the pause no longer. It ends with the last one.</summary>
    public void Release()
    {
        if (IsOn && --_cuts <= 0)
        {
            End();
        }
    }

    /// <summary>This node leads no more.</summary>
    public void Reset()
    {
        if (_isOn)
        {
            End();
        }
    }

    private void End()
    {
        // A part of a ms counts as a whole one: the clock has no smaller unit.
        _isOn = false;
        _restEnd = clock.Now + (RestPerMs * (Math.Min(clock.Now - _since, MsMax) + 1));
    }
}
