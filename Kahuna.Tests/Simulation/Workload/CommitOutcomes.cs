using Kahuna.Client;
using Kahuna.Client.Transactions;
using Kahuna.Tests.Simulation.Engine;

namespace Kahuna.Tests.Simulation.Workload;

/// <summary>
/// Finds out how transactions over several partitions have ended. Some are left by their callers in the middle. Owned
/// by one caller of a run.
/// </summary>
internal sealed class CommitOutcomes(KahunaClient client, TimeProvider clock, SimRandom random)
{
    /// <summary>Mean time after which a caller that leaves does.</summary>
    private const double LeavesMs = 8;

    /// <summary>
    /// Whether a transaction was committed; null when nobody says. Some callers leave in the middle, and some of those
    /// that do not know ask.
    /// </summary>
    public async Task<bool?> FindAsync(Func<CancellationToken, Task<bool>> commit)
    {
        using CancellationTokenSource? leaves = random.Chance(0.3)
            ? new CancellationTokenSource(TimeSpan.FromMilliseconds(1 + random.Exponential(LeavesMs)), clock)
            : null;

        string? name;
        bool isOver;
        try
        {
            return await commit(leaves?.Token ?? CancellationToken.None);
        }
        catch (KahunaException error)
        {
            if (error.Outcome == OperationOutcome.DidNotHappen)
            {
                return false;
            }

            (name, isOver) = (error.TransactionId, error.Outcome == OperationOutcome.Happened);
        }
        catch (KahunaCanceledException canceled)
        {
            if (canceled.Outcome == OperationOutcome.DidNotHappen)
            {
                return false;
            }

            (name, isOver) = (canceled.TransactionId, canceled.Outcome == OperationOutcome.Happened);
        }

        try
        {
            // One that is over has carried out one of its lists; which one it was, its outcome says.
            return name is null || (!isOver && random.Chance(0.3))
                ? null
                : await client.Transactions.FindOutcomeAsync(name) == TransactionOutcome.Committed;
        }
        catch (KahunaException)
        {
            return null;
        }
    }
}
