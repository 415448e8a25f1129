using System.Globalization;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Client.Outcomes;

/// <summary>
/// Creates the exceptions with which a transaction over several partitions can end. Stateless, any thread.
/// </summary>
internal static class TransactionErrors
{
    /// <summary>One part could not be prepared, or the decision could not be sent.</summary>
    public static KahunaException NothingWritten(KahunaException cause) => new(
        cause.Code,
        OperationOutcome.DidNotHappen,
        cause.Outcome == OperationOutcome.DidNotHappen
            ? $"{cause.Message.TrimEnd('.')}; nothing was written."
            : "A partition did not answer when the transaction was prepared; nothing was written.",
        cause);

    /// <summary>A script that writes nothing could not find out whether what it has read was of one moment.</summary>
    public static KahunaException NotLookedAt(KahunaException cause) => new(
        KahunaErrorCode.Unavailable,
        OperationOutcome.DidNotHappen,
        "No answer said whether the keys that the script has read were unchanged; it wrote nothing.",
        cause);

    /// <summary>
    /// An attempt of a commit was refused for what an earlier one may have freed. Callers run a transaction again after
    /// a conflict, so it is not called one.
    /// </summary>
    public static KahunaException CommitUnknown() => new(
        KahunaErrorCode.OutcomeUnknown,
        OperationOutcome.Unknown,
        "No answer came to an earlier attempt of the commit, and another transaction held a key when it was sent "
            + "again; whether the transaction was committed is not known.");

    /// <summary>Other transactions held keys in each try.</summary>
    public static KahunaException StillHeld(int tries, TimeSpan allowed) => new(
        KahunaErrorCode.KeyInTransaction,
        OperationOutcome.DidNotHappen,
        string.Create(
            CultureInfo.InvariantCulture,
            $"Other transactions held keys of this one in each of {tries:N0} tries within "
                + $"{allowed.TotalSeconds:0.###} s; nothing was written. Try again."));

    /// <summary>The decision was sent, and its answer did not arrive.</summary>
    public static KahunaException NotKnown(KahunaException cause, string id) => new(
        cause.Code,
        OperationOutcome.Unknown,
        $"Whether transaction {id} is committed is not known: its partition has not answered. FindOutcomeAsync finds "
            + "out.",
        cause)
    {
        TransactionId = id,
    };

    /// <summary>The transaction is committed, but its partitions have not said what the operations returned.</summary>
    public static KahunaException ResultsNotKnown(KahunaException? cause, string id) => new(
        cause?.Code ?? KahunaErrorCode.OutcomeUnknown,
        OperationOutcome.Happened,
        $"Transaction {id} is committed; the results of its operations are not known. Read the keys.",
        cause)
    {
        TransactionId = id,
    };

    /// <summary>The groups have not finished the transaction in time.</summary>
    public static KahunaException NoResults() => new(
        KahunaErrorCode.DeadlineExceeded,
        OperationOutcome.Happened,
        "No reply came before the request timeout.");

    /// <summary>A script has ended with an error.</summary>
    public static KahunaException ScriptFailed(string sentence) => new(
        KahunaErrorCode.ScriptFailed, OperationOutcome.DidNotHappen, sentence + ".");

    /// <summary>A partition cannot count the ranges that a script has read, when it is committed.</summary>
    /// <param name="line">Line of the statement that has read the last one.</param>
    /// <param name="column">Its column.</param>
    public static KahunaException ScriptRangeTooLarge(int line, int column) => new(
        KahunaErrorCode.RangeTooLarge,
        OperationOutcome.DidNotHappen,
        string.Create(
            CultureInfo.InvariantCulture,
            $"line {line}, column {column}: the prefixes and buckets that were read up to here have too many rows for "
                + $"a transaction, where recently deleted keys count too; nothing was written. Read narrower ones."));

    /// <summary>What a script had read was changed by others in each try.</summary>
    public static KahunaException ScriptConflict(int tries, TimeSpan allowed) => new(
        KahunaErrorCode.TransactionConflict,
        OperationOutcome.DidNotHappen,
        string.Create(
            CultureInfo.InvariantCulture,
            $"What the script had read was changed by others in each of {tries:N0} tries within "
                + $"{allowed.TotalSeconds:0.###} s; nothing was written. Try again."));

    /// <summary>A list of operations cannot be carried out.</summary>
    /// <param name="status">Why not.</param>
    /// <param name="operation">Which operation of the list, from 0 on.</param>
    public static KahunaException Impossible(OutcomeStatus status, long operation)
    {
        if (status is OutcomeStatus.NotAnInteger or OutcomeStatus.Overflow)
        {
            return OperationErrors.NoSum(status, operation);
        }

        OutcomeRow? row = OutcomeStatuses.Find(status);
        return new KahunaException(
            row?.Error ?? KahunaErrorCode.Protocol,
            OperationOutcome.DidNotHappen,
            row?.Sentence ?? "The transaction cannot be carried out; nothing was changed.");
    }
}
