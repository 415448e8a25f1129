using Kahuna.Server.Access;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.Meta;

namespace Kahuna.Server.Hosting.Administration;

/// <summary>What one version of the records has about recoveries. Immutable.</summary>
/// <param name="Votes">One per node at most.</param>
/// <param name="Ends">Requests that were carried out.</param>
internal sealed record RecoveryRows(IReadOnlyList<RecoveryVote> Votes, IReadOnlyList<RecoveryEnd> Ends)
{
    /// <summary>The most that one change removes of what is too old; more is left to the next one.</summary>
    private const int RemovedMax = AccessRow.RowsMax / 2;

    /// <summary>Those of a book.</summary>
    public static RecoveryRows Of(AccessBook book)
    {
        AccessRow[] rows = [.. book.RowsOf(AccessRowKind.RecoveryVote)];
        return new RecoveryRows(
            [.. rows.Select(RecoveryVote.Read).OfType<RecoveryVote>()],
            [.. rows.Select(RecoveryEnd.Read).OfType<RecoveryEnd>()]);
    }

    /// <summary>The row that removes a vote.</summary>
    public static AccessRow Removed(RecoveryVote vote) => AccessRowFormat.Deleted(vote.ToRow());

    /// <summary>The rows that remove all votes.</summary>
    public IEnumerable<AccessRow> AllVotes() => Votes.Select(Removed);

    /// <summary>The rows that remove what counts no more: old votes, and ends of requests that are too old.</summary>
    /// <param name="now">The present time.</param>
    /// <param name="except">The node whose vote the change has itself.</param>
    public IEnumerable<AccessRow> Outdated(DateTimeOffset now, NodeId except)
    {
        // A request may still count by the clock of a node that is behind.
        DateTimeOffset surely = now - RecoveryRequest.Lifetime;
        return Votes
            .Where(vote => vote.Node != except && !RecoveryRequest.IsRecent(vote.VotedMs, now))
            .Select(Removed)
            .Concat(Ends
                .Where(end => end.EndedMs < (surely - RecoveryRequest.Lifetime).ToUnixTimeMilliseconds())
                .Select(static end => AccessRowFormat.Deleted(end.ToRow())))
            .Take(RemovedMax);
    }
}
