using Kahuna.Client;
using Kahuna.Client.Locks;

namespace Kahuna.Tests.Simulation.Workload;

/// <summary>Asks for locks and semaphores through the SDK, and notes what came back. Owned by one caller.</summary>
internal sealed class LockCalls(SimCluster cluster, KahunaClient client)
{
    /// <summary>How late an acquire may end after its wait and the request timeout.</summary>
    private const long LateNs = 1_000_000_000;

    /// <summary>
    /// Asks for what the call names. Null when it was not granted, or nobody knows; then the lease ends it.
    /// </summary>
    /// <param name="call">What is wanted; takes the outcome.</param>
    /// <param name="renews">The client renews the lease.</param>
    public async Task<LockHandle?> AcquireAsync(Call call, bool renews)
    {
        LockOptions options = new()
        {
            Durability = call.IsEphemeral ? Durability.Ephemeral : Durability.Persistent,
            Mode = call.Mode == LockMode.Shared ? LockMode.Shared : LockMode.Exclusive,
            AutoRenew = renews,
            ReentrantOwner = call.IsNamed ? $"caller {call.Process}" : null,
        };
        TimeSpan lease = TimeSpan.FromMilliseconds(call.TtlMs!.Value);
        TimeSpan wait = TimeSpan.FromMilliseconds(call.By);
        LockHandle? handle = null;
        try
        {
            handle = call.Permits == 0
                ? call.By == 0
                    ? await client.Locks.TryAcquireAsync(call.Key, lease, options)
                    : await client.Locks.AcquireAsync(call.Key, lease, wait, options)
                : call.By == 0
                    ? await client.Semaphores.TryAcquireAsync(call.Key, call.Permits, lease, options)
                    : await client.Semaphores.AcquireAsync(call.Key, call.Permits, lease, wait, options);
            call.Outcome = handle is null ? CallOutcome.Fail : CallOutcome.Ok;
            call.Token = handle?.Token.Value ?? 0;
        }
        catch (KahunaException error)
        {
            call.Error = error.Code.ToString();
            call.Outcome = error.Outcome == OperationOutcome.DidNotHappen ? CallOutcome.Fail : CallOutcome.Unknown;
        }

        long lateNs =
            cluster.Scheduler.NowNs - call.CallNs - (call.By * 1_000_000) - (
                cluster.Config.RequestTimeoutMs * 1_000_000L);
        if (lateNs > LateNs)
        {
            cluster.Rules.Break(
                "a call ends at its deadline",
                $"acquire of {call.Name} by {call.Process}: {lateNs / 1_000_000} ms later");
        }

        return handle;
    }
}
