using System.Globalization;
using Kahuna.Wire;

namespace Kahuna.Tests.Linearizability;

/// <summary>
/// Operations by key, checked to be a history: complete, in one clock, one at a time per process. Whatever is wrong
/// throws <see cref="HistoryException"/>. Owned by one thread while it is built; not changed afterwards.
/// </summary>
internal sealed class History
{
    /// <summary>
    /// Most operations of one key, without those that surely did not happen. The search is exponential in the worst
    /// case, so whoever records retires a key after so many and goes on with a new one.
    /// </summary>
    public const int OperationsPerKeyMax = 300;

    private readonly SortedDictionary<string, List<HistoryOperation>> _keys = new(StringComparer.Ordinal);
    private readonly Dictionary<long, List<HistoryOperation>> _processes = [];
    private readonly int[] _outcomes = new int[3];

    private History()
    {
    }

    /// <summary>Each key with its operations, those included that surely did not happen.</summary>
    public IReadOnlyDictionary<string, List<HistoryOperation>> Keys => _keys;

    /// <summary>Takes the operations in, in any order, as they come.</summary>
    public static History Of(IEnumerable<HistoryOperation> operations)
    {
        History history = new();
        foreach (HistoryOperation operation in operations)
        {
            history.Add(operation);
        }

        history.RequireLocksToBeLocks();
        foreach (List<HistoryOperation> process in history._processes.Values)
        {
            RequireOneAtATime(process);
        }

        return history;
    }

    /// <summary>How many operations ended so.</summary>
    public int Count(HistoryOutcome outcome) => _outcomes[(int)outcome];

    private void Add(HistoryOperation operation)
    {
        if (Refusal(operation) is { } sentence)
        {
            throw new HistoryException(operation.Line, sentence);
        }

        _outcomes[(int)operation.Outcome]++;
        List<HistoryOperation> ofKey = ListOf(_keys, operation.Key);
        string subject = HistoryFields.SubjectOf(operation.Kind);
        if (ofKey.Count > 0 && HistoryFields.SubjectOf(ofKey[0].Kind) is var before && before != subject)
        {
            throw new HistoryException(
                operation.Line, $"{operation.Key} is a {before} and a {subject}; give them different names");
        }

        ofKey.Add(operation);
        if (subject == "key"
            && ofKey.Count > OperationsPerKeyMax
            && ofKey.Count(one => one.Outcome != HistoryOutcome.Fail) > OperationsPerKeyMax)
        {
            throw new HistoryException(
                operation.Line,
                $"key {operation.Key} has more than {OperationsPerKeyMax} operations; retire a key after so "
                    + $"many and go on with a new one");
        }

        ListOf(_processes, operation.Process).Add(operation);
    }

    private static List<HistoryOperation> ListOf<TName>(IDictionary<TName, List<HistoryOperation>> lists, TName name)
    {
        if (!lists.TryGetValue(name, out List<HistoryOperation>? list))
        {
            list = [];
            lists.Add(name, list);
        }

        return list;
    }

    private static string? Refusal(HistoryOperation operation) =>
        operation.Key.Length == 0 ? "key is empty"
        : operation.CallNs < 0 ? $"call is {operation.CallNs}; times are 0 or greater"
        : operation.ReturnNs < operation.CallNs
            ? $"return is {operation.ReturnNs}, before the call at {operation.CallNs}"
        : operation is { Outcome: HistoryOutcome.Ok, ReturnNs: null } ? "the outcome is ok, so return must be given"
        : operation.Arguments.OnlyIfRevision < 1
            ? $"cmpRev is {operation.Arguments.OnlyIfRevision}; it must be 1 or greater"
        : operation.Kind == OperationKind.Next && operation.Arguments.Count < 1
            ? $"count is {operation.Arguments.Count}; it must be 1 or greater"
        : TtlRefusal(operation) ?? LockRefusal(operation) ?? ResultRefusal(operation);

    private static string? TtlRefusal(HistoryOperation operation)
    {
        long least = operation.Kind == OperationKind.Extend ? 0 : 1;
        return operation.Arguments.TtlMs is { } ttl
            ? ttl < least || ttl > Limits.TtlMsMax ? $"ttlMs is {ttl}; it must be {least} to {Limits.TtlMsMax}" : null
            : operation.Kind == OperationKind.Extend ? "extend needs ttlMs" : null;
    }

    private static string? LockRefusal(HistoryOperation operation)
    {
        (OperationArguments asked, OperationResult result) = (operation.Arguments, operation.Result);
        bool isGrant = operation is { Kind: OperationKind.Acquire, Outcome: HistoryOutcome.Ok }
            && result.Affirmed != false;
        return asked.Fence is { Lock.Length: 0 } ? "fence names no lock"
            : asked.Fence?.Token < 1 ? $"the token of the fence is {asked.Fence.Token}; it must be 1 or greater"
            : operation.Kind == OperationKind.Acquire && asked.Mode == default(LockMode) ? "acquire needs a mode"
            : asked.Mode == LockMode.Permit && asked.Permits is < 1 or > Limits.PermitsMax
                ? $"permits is {asked.Permits}; it must be 1 to {Limits.PermitsMax}"
            : isGrant && result.Token is null ? "the lock was granted, so token must be given"
            : result.Token < 1 ? $"token is {result.Token}; it must be 1 or greater"
            : result.Affirmed == false && (result.Token ?? result.UntilNs) is not null
                ? "the result has a token or its end although the answer was no"
            : result.UntilNs < operation.ReturnNs
                ? $"until is {result.UntilNs}, before the return at {operation.ReturnNs}"
            : null;
    }

    private static string? ResultRefusal(HistoryOperation operation)
    {
        OperationResult result = operation.Result;
        return result == OperationResult.Unconstrained ? null
            : operation.Outcome != HistoryOutcome.Ok ? "only an operation whose outcome is ok has a result"
            : result.Revision < 0 ? $"revision is {result.Revision}; it must be 0 or greater"
            : result is { HasValue: true, Affirmed: false } ? "the result has a value although the answer was no"
            : result.HasValue && operation.Kind == OperationKind.Increment && !ValueTable.IsInteger(result.Value, out _)
                ? "the value of an increment must be a 64-bit integer"
            : null;
    }

    /// <summary>A write whose lock is misspelt would go unchecked.</summary>
    private void RequireLocksToBeLocks()
    {
        foreach (HistoryOperation operation in _keys.Values.SelectMany(static operations => operations))
        {
            if (operation.Arguments.Fence is { } fence
                && _keys.TryGetValue(fence.Lock, out List<HistoryOperation>? named)
                && named[0].Kind != OperationKind.Acquire)
            {
                throw new HistoryException(
                    operation.Line,
                    $"fence names {fence.Lock}, which is a "
                        + $"{HistoryFields.SubjectOf(named[0].Kind)}; it must name a lock");
            }
        }
    }

    /// <summary>A process that never got an answer is not over, so nothing may follow.</summary>
    private static void RequireOneAtATime(List<HistoryOperation> process)
    {
        process.Sort((a, b) => (a.CallNs, a.Line).CompareTo((b.CallNs, b.Line)));
        for (int i = 1; i < process.Count; i++)
        {
            HistoryOperation before = process[i - 1];
            HistoryOperation after = process[i];
            bool neverOver = before is { ReturnNs: null, Outcome: HistoryOutcome.Unknown };
            if (neverOver || after.CallNs == before.CallNs || after.CallNs < before.ReturnNs)
            {
                HistoryOperation shown = after.Line >= before.Line ? after : before;
                HistoryOperation other = after.Line >= before.Line ? before : after;
                string place = other.Line == 0
                    ? string.Empty
                    : string.Create(CultureInfo.InvariantCulture, $" of line {other.Line}");
                string end = neverOver
                    ? "which never returned"
                    : $"which ran from {before.CallNs} to {before.ReturnNs ?? before.CallNs}";
                throw new HistoryException(
                    shown.Line,
                    $"process {after.Process} has two operations at a time: the one called at {after.CallNs} "
                        + $"and another one{place}, {end}");
            }
        }
    }
}
