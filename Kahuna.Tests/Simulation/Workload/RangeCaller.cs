using System.Globalization;
using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Outcomes;
using Kahuna.Client.Transactions;
using Kahuna.Tests.Simulation.Engine;

namespace Kahuna.Tests.Simulation.Workload;

/// <summary>
/// A caller whose transactions depend on ranges over all partitions: they claim what nobody has claimed, and seal
/// auctions whose bids others put in and take back without transactions. Owned by one client of a run.
/// </summary>
internal sealed class RangeCaller(SimCluster cluster, KahunaClient client, int process)
{
    private const int Buckets = 12;

    /// <summary>The longest mean pause, so that callers of a round meet.</summary>
    private const double PauseMsMax = 150;

    private readonly SimRandom _random = new SimRandom(cluster.Config.Seed).Fork(170_000 + (ulong)process);
    private readonly List<string> _bids = [];
    private long _bidsOf;

    private RangeClaims Claims => cluster.RangeClaims;

    public async Task RunAsync()
    {
        while (!cluster.LoadEnds)
        {
            await cluster.PauseAsync(_random.Exponential(Math.Min(cluster.Config.ThinkMs, PauseMsMax)));
            long round = RangeClaims.RoundAt(cluster.Scheduler.NowNs);
            try
            {
                await (_random.Next(8) switch
                {
                    0 => ClaimAsync(round),
                    1 => ClaimAtOnceAsync(round),
                    2 => ClaimAtEitherLevelAsync(round),
                    3 => SealAsync(round),
                    4 => TakeBackAsync(round),
                    _ => BidAsync(round),
                });
            }
            catch (KahunaException)
            {
                // What may have happened is not counted.
            }
        }
    }

    /// <summary>Claims the round if a scan finds no claim.</summary>
    private async Task ClaimAsync(long round)
    {
        await using Transaction transaction = await client.Transactions.BeginAsync(
            new TransactionOptions { Durability = Durability.Persistent });
        string prefix = RangeClaims.ClaimsOf(round);
        bool wasClaimed = Claims.IsClaimed(round);
        int found = 0;
        await foreach (KeyValueEntry _ in transaction.ScanAsync(prefix, Direction()))
        {
            found++;
        }

        if (found == 0)
        {
            await transaction.SetAsync(NameIn(prefix), Me);
        }

        await transaction.CommitAsync();
        Claims.Seen(cluster, round, found, wasClaimed);
        Claims.Claimed(cluster, round, found == 0, Me);
    }

    /// <summary>The same in one round trip.</summary>
    private async Task ClaimAtOnceAsync(long round)
    {
        string prefix = RangeClaims.ClaimsOf(round);
        TransactionResult result = await client.Transactions
            .If(KeyCondition.NoKeys(prefix))
            .Then(KeyOperation.Set(NameIn(prefix), Me))
            .WithDurability(Durability.Persistent)
            .CommitAsync();
        Claims.Claimed(cluster, round, result.Succeeded, Me);
    }

    /// <summary>
    /// Claims with a persistent key if there is neither a persistent nor an ephemeral claim; now and then with an
    /// ephemeral one, which may be lost.
    /// </summary>
    private async Task ClaimAtEitherLevelAsync(long round)
    {
        if (!cluster.Config.HasEphemeral)
        {
            return;
        }

        await using Transaction transaction = await client.Transactions.BeginAsync(
            new TransactionOptions { Durability = Durability.Persistent });
        Transaction ephemeral = transaction.WithDurability(Durability.Ephemeral);
        string prefix = RangeClaims.ClaimsOf(round);
        bool isFree = await transaction.CountAsync(prefix) + await ephemeral.CountAsync(prefix) == 0;
        bool stays = _random.Chance(0.7);
        if (isFree)
        {
            await (stays ? transaction : ephemeral).SetAsync(NameIn(prefix), Me);
        }

        await transaction.CommitAsync();
        Claims.Claimed(cluster, round, isFree && stays, Me);
    }

    /// <summary>Writes down all bids of the round, once.</summary>
    private async Task SealAsync(long round)
    {
        await using Transaction transaction = await client.Transactions.BeginAsync(
            new TransactionOptions { Durability = Durability.Persistent });
        string seal = RangeClaims.SealOf(round);
        if (await transaction.ExistsAsync(seal))
        {
            return;
        }

        List<string> bids = [];
        await foreach (KeyValueEntry bid in transaction.ScanAsync(RangeClaims.BidsOf(round), Direction()))
        {
            bids.Add(bid.Key);
        }

        await transaction.SetAsync(seal, string.Join(' ', bids.Order(StringComparer.Ordinal)));
        await transaction.CommitAsync();
        Claims.Seals++;
    }

    /// <summary>Puts in a bid. When the round has no seal afterwards, a later one must have the bid.</summary>
    private async Task BidAsync(long round)
    {
        string bid = NameIn(RangeClaims.BidsOf(round));
        SetResult set = await client.KeyValues.SetAsync(
            bid, Me, new SetOptions { Durability = Durability.Persistent, OnlyIfAbsent = true });
        if (!set.Applied)
        {
            return;
        }

        if (_bidsOf != round)
        {
            _bids.Clear();
            _bidsOf = round;
        }

        _bids.Add(bid);
        if (!await IsSealedAsync(round))
        {
            Claims.CameBefore(round, bid);
        }
    }

    /// <summary>
    /// Takes a bid of its own back. When the round has no seal afterwards, a later one has not the bid.
    /// </summary>
    private async Task TakeBackAsync(long round)
    {
        if (_bids.Count == 0 || _bidsOf != round)
        {
            return;
        }

        string bid = _bids[^1];
        _bids.RemoveAt(_bids.Count - 1);
        Claims.MayGo(round, bid);
        await client.KeyValues.DeleteAsync(bid, new DeleteOptions { Durability = Durability.Persistent });
        if (!await IsSealedAsync(round))
        {
            Claims.WentBefore(round, bid);
        }
    }

    private async Task<bool> IsSealedAsync(long round) =>
        (await client.KeyValues.GetAsync(
            RangeClaims.SealOf(round), new ReadOptions { Durability = Durability.Persistent })).Found;

    private ScanOptions Direction() => new()
    {
        Descending = _random.Chance(0.3),
        KeysOnly = _random.Chance(0.5),
        PageSize = 1 + _random.Next(4),
    };

    private string Me => string.Create(CultureInfo.InvariantCulture, $"{process}");

    /// <summary>A new name under a prefix, in one of some buckets.</summary>
    private string NameIn(string prefix) => string.Create(
        CultureInfo.InvariantCulture, $"{prefix}{_random.Next(Buckets)}/{process}.{_random.Next(1_000_000)}");
}
