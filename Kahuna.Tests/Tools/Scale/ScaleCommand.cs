namespace Kahuna.Tests.Tools.Scale;

/// <summary>
/// The sections of scripts/scale.sh: fills, loads, kills and restarts a cluster, and hands the figures to a report.
/// Stateless.
/// </summary>
internal static class ScaleCommand
{
    public const string Defaults =
        "--sections=keys,flush,snapshot --keys=10000,1000000 --stored=1000000 --seconds=0 --rounds=3 --minutes=30 "
        + "--output=";

    public static void Run(Measurement run)
    {
        ScaleCluster cluster = new(run, 0);
        ScaleReport report = new(run.Output, ScaleFigures.Of(run), run.Options.Text("output"));
        foreach (string name in run.Options.List("sections").Distinct())
        {
            run.Say($"section {name}");
            report.Add(name, name switch
            {
                "keys" => KeysSection.Measure(run, cluster),
                "flush" => FlushSection.Measure(run, cluster),
                "snapshot" => SnapshotSection.Measure(run, cluster),
                "long" => LongSection.Measure(run, cluster),
                _ => throw new MeasureException($"there is no section {name}"),
            });
        }

        run.SayTime();
    }
}
