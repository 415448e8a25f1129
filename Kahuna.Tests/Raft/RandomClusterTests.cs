namespace Kahuna.Tests.Raft;

/// <summary>
/// Raft's guarantees under random faults. A failure names the seed; the same seed gives the same run.
/// </summary>
public sealed class RandomClusterTests
{
    private const int StepsPerNode = 600;

    [Theory]
    [InlineData(3, 0)]
    [InlineData(5, 0)]
    [InlineData(3, 1)]
    [InlineData(1, 0)]
    [InlineData(2, 0)]
    public void Promises_hold_under_faults(int voters, int learners)
    {
        Repeats seeds = new(300, 100, share: 25);
        int leaders = 0;
        int reads = 0;
        int committed = 0;
        int lost = 0;
        int crashes = 0;
        int fetches = 0;
        int transfers = 0;
        int cuts = 0;
        int snapshots = 0;
        int aborts = 0;
        int crashesInInstall = 0;
        int wipes = 0;
        int rejoins = 0;
        while (seeds.Next())
        {
            int seed = seeds.Done;
            var cluster = new RandomCluster(seed, voters, learners);
            try
            {
                cluster.Storm(StepsPerNode * (voters + learners + 1));
                cluster.Recover();
            }
            catch (Exception e)
            {
                throw new InvalidOperationException(
                    $"seed {seed}, {voters} voters, {learners} learners: {e.Message}", e);
            }

            leaders += cluster.Rules.Leaders;
            reads += cluster.Rules.ReadsConfirmed;
            committed += cluster.Rules.Committed.Count;
            lost += cluster.Lost;
            crashes += cluster.Crashes;
            fetches += cluster.Fetches;
            transfers += cluster.Transfers;
            cuts += cluster.Storage.Cuts;
            snapshots += cluster.Storage.Snapshots;
            aborts += cluster.Storage.Aborts;
            crashesInInstall += cluster.Storage.CrashesInInstall;
            wipes += cluster.Storage.Wipes;
            rejoins += cluster.Storage.Rejoins;
        }

        // A storm in which nothing happened proves nothing.
        Assert.True(
            leaders >= seeds.Done && reads > seeds.Done && committed > seeds.Done * 10 && crashes > seeds.Done,
            $"leaders {leaders}, reads {reads}, committed {committed}, crashes {crashes}");
        Assert.True(
            voters == 1
                || (lost > seeds.Done * 10 && (fetches > seeds.Done / 2 || voters == 2) && transfers > seeds.Done / 10),
            $"lost {lost}, fetches {fetches}, transfers {transfers}");
        Assert.True(
            cuts > seeds.Done
                && (voters < 3
                    || (snapshots > seeds.Done && aborts > seeds.Done / 20 && crashesInInstall > seeds.Done / 10)),
            $"cuts {cuts}, snapshots {snapshots}, aborts {aborts}, crashes in install {crashesInInstall}");
        Assert.True(voters < 3 || rejoins > seeds.Done / 4, $"wipes {wipes}, rejoins {rejoins}");
    }
}
