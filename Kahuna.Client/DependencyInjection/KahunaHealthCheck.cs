using Kahuna.Client.Outcomes;
using Microsoft.Extensions.Diagnostics.HealthChecks;

namespace Kahuna.Client.DependencyInjection;

/// <summary>
/// Healthy only when each partition answers a linearizable read within its time. Owned by the container; any thread.
/// </summary>
/// <param name="client">The application's client.</param>
/// <param name="timeout">How long the partitions may take, all together.</param>
internal sealed class KahunaHealthCheck(KahunaClient client, TimeSpan timeout) : IHealthCheck
{
    /// <inheritdoc/>
    public async Task<HealthCheckResult> CheckHealthAsync(
        HealthCheckContext context, CancellationToken cancellationToken)
    {
        using CancellationTokenSource limit = CancellationTokenSource.CreateLinkedTokenSource(cancellationToken);
        limit.CancelAfter(timeout);
        try
        {
            await client.CheckAsync(limit.Token).ConfigureAwait(false);
            return HealthCheckResult.Healthy("Every partition answers.");
        }
        catch (OperationCanceledException) when (cancellationToken.IsCancellationRequested)
        {
            throw;
        }
        catch (OperationCanceledException late)
        {
            string reason = await ReasonAsync().ConfigureAwait(false);
            return new HealthCheckResult(context.Registration.FailureStatus, reason, late);
        }
        catch (Exception failure) when (failure is KahunaException or ObjectDisposedException)
        {
            return new HealthCheckResult(context.Registration.FailureStatus, failure.Message, failure);
        }
    }

    /// <summary>What the connected nodes say about partitions that do not answer.</summary>
    private async Task<string> ReasonAsync()
    {
        string late = FormattableString.Invariant(
            $"Not every partition answered within {timeout.TotalSeconds:0.###} s");
        using CancellationTokenSource atOnce = new(TimeSpan.FromMilliseconds(100));
        try
        {
            ClusterDescription cluster = await client.DescribeAsync(atOnce.Token).ConfigureAwait(false);
            return cluster.LeaderlessPartitions is { Count: > 0 } leaderless
                ? FormattableString.Invariant(
                    $"{late}: no leader is known of {leaderless.Count} of {cluster.Partitions.Count} partitions.")
                : late + ".";
        }
        catch (Exception unknown) when (
            unknown is KahunaException or OperationCanceledException or ObjectDisposedException)
        {
            return late + ": no node is connected.";
        }
    }
}
