using Xunit.Abstractions;

namespace Kahuna.Tests.Cluster.Soak;

/// <summary>A minute of the soak, with another seed each time; scripts/soak.sh goes on for longer.</summary>
[Collection(ClusterCollection.Name)]
public sealed class SoakTests(ITestOutputHelper output)
{
    [Fact]
    public async Task A_minute_of_faults_leaves_every_history_linearizable()
    {
        SoakRun run = new(new SoakOptions { Duration = TimeSpan.FromSeconds(60) }, output);
        output.WriteLine($"Checked: {await run.RunAsync()}");
    }
}
