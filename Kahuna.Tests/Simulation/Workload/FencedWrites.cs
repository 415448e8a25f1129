using System.Globalization;
using System.Text;
using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Locks;
using Kahuna.Client.Outcomes;
using Kahuna.Server.State.Rows;
using Kahuna.Tests.Simulation.Engine;

namespace Kahuna.Tests.Simulation.Workload;

/// <summary>What those do who hold a lock: writes that count only while they do. Owned by one caller.</summary>
internal sealed class FencedWrites(SimCluster cluster, KahunaClient client, int process)
{
    /// <summary>Writes of so long go to one key: more would be too much for the checker.</summary>
    private const long KeyNs = 4_000_000_000;

    /// <summary>Clocks that drift make leases end early by as much as they do.</summary>
    private readonly bool _isExact = !cluster.Config.Classes.Contains(FaultClass.ClockDrift);

    private readonly SimRandom _random = new SimRandom(cluster.Config.Seed).Fork(60_000 + (ulong)process);

    /// <summary>One write under the token of what is held.</summary>
    /// <param name="held">The lock, as it was granted.</param>
    /// <param name="surelyNs">Until then the lease surely lasts; asked for when the write is refused.</param>
    public async Task WriteAsync(Call held, Func<long> surelyNs)
    {
        Call call = cluster.History.Begin(Draw(held), cluster.Scheduler);
        try
        {
            await RunAsync(
                call,
                held.IsEphemeral ? Durability.Ephemeral : Durability.Persistent,
                new Fence(held.Key, new FencingToken(held.Token)));
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

    private Call Draw(Call held)
    {
        CallKind kind = _random.Pick(
            [CallKind.Set, CallKind.Set, CallKind.Set, CallKind.Delete, CallKind.Extend, CallKind.Increment]);
        string place = kind == CallKind.Increment ? "/count" : "/value";
        return new Call
        {
            Process = process,
            Key = string.Create(
                CultureInfo.InvariantCulture,
                $"{held.Key.Replace("/lock", place, StringComparison.Ordinal)} {cluster.Scheduler.NowNs / KeyNs}"),
            IsEphemeral = held.IsEphemeral,
            Kind = kind,
            CallNs = cluster.Scheduler.NowNs,
            Value = kind == CallKind.Set
                ? string.Create(CultureInfo.InvariantCulture, $"v{cluster.History.NextValue()}")
                : null,
            TtlMs = kind == CallKind.Extend ? SimClient.TtlMsMax : null,
            By = kind == CallKind.Increment ? 1 : 0,
            Fence = held.Name,
            Token = held.Token,
        };
    }

    private async Task RunAsync(Call call, Durability durability, Fence fence)
    {
        switch (call.Kind)
        {
            case CallKind.Set:
                SetResult set = await client.KeyValues.SetAsync(
                    call.Key, call.Value, new SetOptions { Durability = durability, Fence = fence });
                (call.Done, call.Revision) = (set.Applied, set.Revision.Value);
                break;
            case CallKind.Delete:
                DeleteResult deleted = await client.KeyValues.DeleteAsync(
                    call.Key, new DeleteOptions { Durability = durability, Fence = fence });
                (call.Done, call.Revision) = (deleted.Deleted, deleted.Revision.Value);
                break;
            case CallKind.Extend:
                ExtendResult extended = await client.KeyValues.ExtendAsync(
                    call.Key,
                    TimeSpan.FromMilliseconds(call.TtlMs!.Value),
                    new ExtendOptions { Durability = durability, Fence = fence });
                (call.Done, call.Revision) = (extended.Extended, extended.Revision.Value);
                break;
            default:
                IncrementResult sum = await client.KeyValues.IncrementAsync(
                    call.Key, call.By, new IncrementOptions { Durability = durability, Fence = fence });
                (call.Done, call.Revision, call.Number) = (true, sum.Revision.Value, sum.Value);
                break;
        }
    }

    /// <summary>The cluster says that the lock is not held any more, while its lease goes on.</summary>
    public void EndedEarly(Call call, string what)
    {
        // An epoch that is lost takes its locks along, though nobody else has them before their leases are over.
        bool isLost = call.IsEphemeral
            && StateLimits.EpochOf(new Revision(call.Token)).Value < cluster.Rules.Ephemeral(
                InitialPartition.Of(Encoding.UTF8.GetBytes(call.Key), cluster.Config.Groups)).Newest;
        if (_isExact && !isLost)
        {
            cluster.Rules.Break(
                "no lease ends early",
                $"token {call.Token} of {call.Name} was {what} by {process}, and was not held any "
                    + $"more, while its lease goes on");
        }
    }
}
