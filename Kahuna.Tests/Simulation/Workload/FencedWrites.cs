using System.Globalization;
using System.Text;
using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Locks;
using Kahuna.Client.Results;
using Kahuna.Client.Wire.Routing;
using Kahuna.Server.State;

namespace Kahuna.Tests.Simulation.Workload;

/// <summary>What those do who hold a lock: writes that count only while they do. Owned by one caller.</summary>
internal sealed class FencedWrites(SimCluster cluster, KahunaClient client, int process)
{
    /// <summary>Writes of so long go to one key: more would be too much for the checker.</summary>
    private const long KeyNs = 4_000_000_000;

    /// <summary>Clocks that drift make leases end early by as much as they do.</summary>
    private readonly bool _isExact = !cluster.Config.Classes.Contains(FaultClass.ClockDrift);

    /// <summary>One write under the token of what is held.</summary>
    /// <param name="held">The lock, as it was granted.</param>
    /// <param name="surelyNs">Until then the lease surely lasts; asked for when the write is refused.</param>
    public async Task WriteAsync(Call held, Func<long> surelyNs)
    {
        Call call = cluster.History.Begin(
            new Call
            {
                Process = process,
                Key = string.Create(CultureInfo.InvariantCulture, $"{held.Key.Replace("/lock", "/value", StringComparison.Ordinal)} {cluster.Scheduler.NowNs / KeyNs}"),
                IsEphemeral = held.IsEphemeral,
                Kind = CallKind.Set,
                CallNs = cluster.Scheduler.NowNs,
                Value = string.Create(CultureInfo.InvariantCulture, $"v{cluster.History.NextValue()}"),
                Fence = held.Name,
                Token = held.Token,
            },
            cluster.Scheduler);
        try
        {
            SetResult set = await client.KeyValues.SetAsync(call.Key, call.Value, new SetOptions { Durability = held.IsEphemeral ? Durability.Ephemeral : Durability.Persistent, Fence = new Fence(held.Key, held.Token) });
            call.Done = set.Applied;
            call.Revision = set.Revision;
            call.Outcome = CallOutcome.Ok;
        }
        catch (KahunaException error)
        {
            call.Error = error.Code.ToString();
            call.Outcome = error.Outcome == OperationOutcome.DidNotHappen ? CallOutcome.Fail : CallOutcome.Unknown;
            if (error.Code == KahunaErrorCode.LockLost && cluster.Scheduler.NowNs < surelyNs())
            {
                EndedEarly(held, "written under");
            }
        }

        cluster.History.End(call, cluster.Scheduler);
    }

    /// <summary>The cluster says that the lock is not held any more, while its lease goes on.</summary>
    public void EndedEarly(Call call, string what)
    {
        // An epoch that is lost takes its locks along, though nobody else has them before their leases are over.
        bool isLost = call.IsEphemeral && StateLimits.EpochOf(call.Token) < cluster.Rules.Ephemeral(KeyRouting.Partition(Encoding.UTF8.GetBytes(call.Key), cluster.Config.Groups)).Newest;
        if (_isExact && !isLost)
        {
            cluster.Rules.Break("no lease ends early", $"token {call.Token} of {call.Name} was {what} by {process}, and was not held any more, while its lease goes on");
        }
    }
}
