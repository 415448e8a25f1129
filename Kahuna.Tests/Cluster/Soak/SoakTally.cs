using System.Globalization;
using Kahuna.Tests.Linearizability;

namespace Kahuna.Tests.Cluster.Soak;

/// <summary>
/// Counts of a run: operations by outcome, kind and error, faults by kind, and the longest time without an answer. Any
/// thread.
/// </summary>
internal sealed class SoakTally
{
    /// <summary>A run of less cannot be told from one in which hardly anything worked.</summary>
    public const long AnswersMin = 1_000;

    /// <summary>From this length on every kind of fault must have happened.</summary>
    public static readonly TimeSpan EnoughForAllFaults = TimeSpan.FromSeconds(60);

    private readonly Lock _gate = new();
    private readonly long[] _outcomes = new long[Enum.GetValues<HistoryOutcome>().Length];
    private readonly long[] _answeredKinds = new long[Enum.GetValues<OperationKind>().Length];
    private readonly long[] _faults = new long[Enum.GetValues<SoakFault>().Length];
    private readonly SortedDictionary<string, long> _errors = new(StringComparer.Ordinal);
    private long _leaders;
    private long _answeredNs;
    private long _silenceNs;

    public long Operations => Count(HistoryOutcome.Ok) + Count(HistoryOutcome.Fail) + Count(HistoryOutcome.Unknown);

    public string Outcomes =>
        Text($"{Operations:N0} operations ({Count(HistoryOutcome.Ok):N0} ok, ")
        + Text($"{Count(HistoryOutcome.Fail):N0} fail, {Count(HistoryOutcome.Unknown):N0} unknown)");

    public string AnsweredKinds =>
        Words(HistoryFields.KeyKinds.Select(kind => (kind.ToString(), Volatile.Read(ref _answeredKinds[(int)kind]))));

    public string Faults =>
        Words(Enum.GetValues<SoakFault>().Select(fault => (fault.ToString(), Count(fault))))
        + Text($"; {_leaders:N0} of a leader");

    public long FaultCount => Enum.GetValues<SoakFault>().Sum(Count);

    /// <summary>Longest time between two answers.</summary>
    public TimeSpan Silence => TimeSpan.FromMicroseconds(Volatile.Read(ref _silenceNs) / 1000);

    public string Errors
    {
        get
        {
            lock (_gate)
            {
                return Words(_errors.Select(static pair => (pair.Key, pair.Value)));
            }
        }
    }

    public long Count(HistoryOutcome outcome) => Volatile.Read(ref _outcomes[(int)outcome]);

    public long Count(SoakFault fault) => Volatile.Read(ref _faults[(int)fault]);

    public void Count(HistoryOperation operation, string? error)
    {
        lock (_gate)
        {
            _outcomes[(int)operation.Outcome]++;
            if (error is not null)
            {
                string name = $"{error} ({operation.Outcome.ToString().ToLowerInvariant()})";
                _errors[name] = _errors.GetValueOrDefault(name) + 1;
                return;
            }

            _answeredKinds[(int)operation.Kind]++;
            long returnNs = operation.ReturnNs!.Value;
            _silenceNs = Math.Max(_silenceNs, returnNs - _answeredNs);
            _answeredNs = Math.Max(_answeredNs, returnNs);
        }
    }

    /// <param name="fault">What happened.</param>
    /// <param name="ofLeader">It happened to one node, which led then.</param>
    public void Count(SoakFault fault, bool ofLeader)
    {
        Interlocked.Increment(ref _faults[(int)fault]);
        Interlocked.Add(ref _leaders, ofLeader ? 1 : 0);
    }

    /// <summary>What a run of this length should have seen and did not: it proved nothing there.</summary>
    public IEnumerable<string> Missed(TimeSpan duration)
    {
        if (Count(HistoryOutcome.Ok) < AnswersMin)
        {
            yield return Text(
                $"only {Count(HistoryOutcome.Ok):N0} operations were answered, and {AnswersMin:N0} are wanted");
        }

        foreach (OperationKind kind in HistoryFields.KeyKinds.Where(
            kind => Volatile.Read(ref _answeredKinds[(int)kind]) == 0))
        {
            yield return $"no {kind} was answered";
        }

        if (duration < EnoughForAllFaults)
        {
            yield break;
        }

        if (Count(HistoryOutcome.Unknown) == 0)
        {
            yield return "no operation ended with an unknown outcome";
        }

        foreach (SoakFault fault in Enum.GetValues<SoakFault>().Where(fault => Count(fault) == 0))
        {
            yield return $"{fault} never happened";
        }
    }

    private static string Words(IEnumerable<(string Name, long Count)> counts) =>
        string.Join(", ", counts.Select(static row => Text($"{row.Name} {row.Count:N0}")));

    private static string Text(FormattableString text) => text.ToString(CultureInfo.InvariantCulture);
}
