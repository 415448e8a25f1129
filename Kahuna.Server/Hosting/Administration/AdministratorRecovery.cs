using Kahuna.Server.Access;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.Meta;

namespace Kahuna.Server.Hosting.Administration;

/// <summary>
/// Votes for the request in this node's data directory, and carries it out when a majority of the nodes has voted for
/// the same one (docs/adr/0047-lost-administrator.md). Owned by the node, which runs it once after its start.
/// </summary>
/// <param name="request">The request.</param>
/// <param name="voter">This node and its data directory.</param>
/// <param name="voters">The nodes of the cluster.</param>
/// <param name="ledger">The records.</param>
/// <param name="ports">What it tells and asks beside them.</param>
internal sealed class AdministratorRecovery(
    RecoveryRequest request, RecoveryVoter voter, VoterSet voters, IAccessLedger ledger, RecoveryPorts ports)
{
    private const string Vote = "vote to recover administrator";
    private const string Recover = "recover administrator";

    private static readonly TimeSpan s_pause = TimeSpan.FromMilliseconds(500);

    private readonly byte[] _fingerprint = request.Fingerprint;

    private int Majority => (voters.Ids.Count / 2) + 1;

    /// <summary>Ends when the request is carried out or too old, or with the token.</summary>
    public async Task RunAsync(CancellationToken stop)
    {
        try
        {
            while (!await StepAsync(stop).ConfigureAwait(false))
            {
                await Task.Delay(s_pause, ports.Time, stop).ConfigureAwait(false);
            }
        }
        catch (OperationCanceledException)
        {
            // The node stops.
        }
    }

    /// <summary>Does what is to be done now. True: nothing will be.</summary>
    public async Task<bool> StepAsync(CancellationToken stop)
    {
        AccessBook book = ledger.Book;
        DateTimeOffset now = ports.Time.GetUtcNow();
        RecoveryRows rows = RecoveryRows.Of(book);
        if (rows.Ends.Any(end => end.Fingerprint.AsSpan().SequenceEqual(_fingerprint)))
        {
            ports.Log.AdministratorRecovered(request.User);
            ports.RemoveFile();
            return true;
        }

        if (!RecoveryRequest.IsRecent(request.MadeMs, now))
        {
            return await GiveUpAsync(book, rows, now, stop).ConfigureAwait(false);
        }

        if (RecoveryVote.Count(rows.Votes, _fingerprint, voters, now) >= Majority)
        {
            await CompleteAsync(book, rows, now, stop).ConfigureAwait(false);
        }
        else if (!rows.Votes.Any(IsMine))
        {
            await VoteAsync(book, rows, now, stop).ConfigureAwait(false);
        }

        return false;
    }

    private bool IsMine(RecoveryVote vote) =>
        vote.Node == voter.Node
        && vote.DirectoryId == voter.DirectoryId
        && vote.Fingerprint.AsSpan().SequenceEqual(_fingerprint);

    private async Task VoteAsync(AccessBook book, RecoveryRows rows, DateTimeOffset now, CancellationToken stop)
    {
        RecoveryVote mine = new(voter.Node, voter.DirectoryId, _fingerprint, now.ToUnixTimeMilliseconds());
        AccessRow[] change = [.. rows.Outdated(now, except: voter.Node), mine.ToRow()];
        if (await ledger.ChangeAsync(book.Version, change, stop).ConfigureAwait(false) == AccessCommit.Applied)
        {
            ports.Log.RecoveryVoted(request.User, Majority, voters.Ids.Count);
            ports.Audit.Write(Caller.Node, Vote, request.User, AuditResults.Done);
        }
    }

    /// <summary>All of it is one change; the next step sees that it is done.</summary>
    private async Task CompleteAsync(AccessBook book, RecoveryRows rows, DateTimeOffset now, CancellationToken stop)
    {
        UserRecord? present = book.FindUser(request.User);
        uint id = present?.Id ?? book.LastUserId + 1;
        UserRecord user = (present ?? new UserRecord(id, request.User)) with
        {
            Password = request.Password,
            PasswordVersion = (present?.PasswordVersion ?? 0) + 1,
            IsDisabled = false,
            Roles = [.. (present?.Roles ?? []).Append(RoleRecord.AdminName).Distinct()],
        };
        List<AccessRow> change =
        [
            AccessRowFormat.Of(user), new RecoveryEnd(_fingerprint, now.ToUnixTimeMilliseconds()).ToRow(),
        ];
        if (present is null)
        {
            change.Add(AccessRowFormat.OfLastUserId(id));
        }

        change.AddRange(rows.AllVotes().Take(AccessRow.RowsMax - change.Count));
        AccessCommit commit = await ledger.ChangeAsync(book.Version, change, stop).ConfigureAwait(false);
        if (commit == AccessCommit.Applied)
        {
            ports.Audit.Write(Caller.Node, Recover, request.User, AuditResults.Done);
        }
    }

    private async Task<bool> GiveUpAsync(
        AccessBook book, RecoveryRows rows, DateTimeOffset now, CancellationToken stop)
    {
        AccessRow[] change =
        [
            .. rows.Votes.Where(IsMine).Select(RecoveryRows.Removed), .. rows.Outdated(now, except: voter.Node),
        ];
        if (change.Length > 0
            && await ledger.ChangeAsync(book.Version, change, stop).ConfigureAwait(false) != AccessCommit.Applied)
        {
            return false;
        }

        ports.Log.RecoveryTooOld(request.User);
        ports.Audit.Write(
            Caller.Node, Recover, request.User, AuditResults.Refused("no majority of the nodes voted in time"));
        ports.RemoveFile();
        return true;
    }
}

/// <summary>Who votes: a node with a data directory. Immutable.</summary>
/// <param name="Node">The node.</param>
/// <param name="DirectoryId">Of its data directory.</param>
internal sealed record RecoveryVoter(NodeId Node, ulong DirectoryId);

/// <summary>What a recovery needs beside the records. Immutable.</summary>
/// <param name="Audit">Gets votes and their end.</param>
/// <param name="Log">The node's log.</param>
/// <param name="Time">The clock.</param>
/// <param name="RemoveFile">Removes the request from the data directory.</param>
internal sealed record RecoveryPorts(IAuditLog Audit, ILogger Log, TimeProvider Time, Action RemoveFile);
