using Kahuna.Tests.Tidy.Samples.Primitives;
using Mono.Cecil;

namespace Kahuna.Tests.Tidy;

/// <summary>
/// The pure middle touches nothing that could make two nodes differ, and the loops around it take time, randomness and
/// scheduling through ports.
/// </summary>
[Collection(CompiledCodeCollection.Name)]
public sealed class PurityTests
{
    [Theory]
    [InlineData("Raft")]
    [InlineData("State")]
    [InlineData("Primitives")]
    public void Folder_is_pure(string folder) =>
        Findings.AssertNone(TypesOf(folder).SelectMany(BannedApis.Pure.Violations));

    [Fact]
    public void Partitions_take_their_surroundings_through_ports() =>
        Findings.AssertNone(TypesOf("Partitions").SelectMany(BannedApis.Owned.Violations));

    /// <summary>What the simulator runs of the folders that also hold adapters to the real world.</summary>
    [Fact]
    public void What_the_simulator_runs_is_given_its_surroundings()
    {
        // docs/simulation.md says of each what covers it instead.
        string[] leftOut =
        [
            "Kahuna.Server.Storage.ThreadedLog",
            "Kahuna.Server.Storage.DataDirectory",
            "Kahuna.Server.Storage.SegmentPreparer",
            "Kahuna.Client.Connection.GrpcFrameChannel",
            "Kahuna.Client.Connection.GrpcFrameStream",
            "Kahuna.Client.Connection.DirectFrameStream",
            "Kahuna.Client.Connection.DirectLink",
            "Kahuna.Client.Connection.DirectLinkDialer",
            "Kahuna.Client.Connection.KeepAlive",
            "Kahuna.Client.Connection.GrpcUnaryCall",
            "Kahuna.Client.Connection.StreamStatus",
            "Kahuna.Client.Connection.ServerTrust",
            "Kahuna.Client.Connection.CertificateFile",
            "Kahuna.Client.Connection.AddressRace",
            "Kahuna.Client.Connection.DevelopmentAuthority",

            // Each has one line for the real world, which a given context or port takes the place of.
            "Kahuna.Client.Connection.ConnectionPorts",
            "Kahuna.Client.Connection.WakeSignal",
            "Kahuna.Client.Connection.Operation`1",
            "Kahuna.Client.Connection.SuspendAwareTime",

            // Threads in the place of timers, only with the real clock: Client/StarvedPoolTests.
            "Kahuna.Client.Locks.LeaseThread", "Kahuna.Client.Locks.LossNotices",
        ];
        string[] folders =
        [
            "Kahuna.Server.Storage",
            "Kahuna.Server.Storage.Checkpoints",
            "Kahuna.Server.Cluster",
            "Kahuna.Client.Connection",
            "Kahuna.Client.KeyValues",
            "Kahuna.Client.Locks",
            "Kahuna.Client.Elections",
        ];
        string[] admission = ["RequestAdmission", "UnaryReplySink", "UnaryExecutor"];
        List<TypeDefinition> types =
        [
            .. Product.Server.Types.Concat(Product.Client.Types)
                .Where(type => folders.Contains(type.Namespace) && !leftOut.Contains(type.FullName)),
            .. Product.Server.Types.Where(
                type => type.Namespace == "Kahuna.Server.Api" && admission.Contains(type.Name)),
        ];
        Assert.All(folders, folder => Assert.Contains(types, type => type.Namespace == folder));
        Findings.AssertNone(types.SelectMany(BannedApis.Simulated.Violations));
    }

    [Theory]
    [InlineData(typeof(Samples.Partitions.RunsTask), "System.Threading.Tasks.Task::Run")]
    [InlineData(typeof(Samples.Partitions.Delays), "System.Threading.Tasks.Task::Delay")]
    [InlineData(typeof(Samples.Partitions.CancelsByHiddenTimer), "System.Threading.CancellationTokenSource::.ctor")]
    [InlineData(typeof(Samples.Partitions.TakesSystemClock), "System.TimeProvider::get_System")]
    [InlineData(typeof(Samples.Raft.ReadsClock), "System.DateTime")]
    [InlineData(typeof(Samples.Raft.MakesGuid), "System.Guid::NewGuid")]
    [InlineData(typeof(Samples.Raft.SetsTimer), "System.Threading.Timer")]
    [InlineData(typeof(Samples.Raft.StartsThread), "System.Threading.Thread")]
    public void Work_outside_a_run_is_seen(Type sample, string expected) =>
        Assert.Contains(BannedApis.Simulated.Violations(DependencyRuleTests.Compiled(sample)), violation =>
            violation.Contains(expected, StringComparison.Ordinal));

    [Fact]
    public void A_delay_by_a_given_clock_is_not() =>
        Findings.AssertNone(BannedApis.Simulated.Violations(
            DependencyRuleTests.Compiled(typeof(Samples.Partitions.DelaysByGivenClock))));

    [Theory]
    [InlineData(typeof(Samples.Raft.ReadsClock), "System.DateTime")]
    [InlineData(typeof(Samples.Raft.ReadsTickCount), "System.Environment::get_TickCount64")]
    [InlineData(typeof(Samples.Raft.MeasuresTime), "System.Diagnostics.Stopwatch")]
    [InlineData(typeof(Samples.Raft.TakesTimeProvider), "System.TimeProvider")]
    [InlineData(typeof(Samples.Raft.DrawsRandom), "System.Random")]
    [InlineData(typeof(Samples.Raft.DrawsSecureRandom), "System.Security.Cryptography.RandomNumberGenerator")]
    [InlineData(typeof(Samples.Raft.MakesGuid), "System.Guid::NewGuid")]
    [InlineData(typeof(Samples.Raft.Waits), "System.Threading.Tasks.Task")]
    [InlineData(typeof(Samples.Raft.Locks), "System.Threading.Monitor")]
    [InlineData(typeof(Samples.Raft.StartsThread), "System.Threading.Thread")]
    [InlineData(typeof(Samples.Raft.SetsTimer), "System.Threading.Timer")]
    [InlineData(typeof(Samples.Raft.ReadsFile), "System.IO.File")]
    [InlineData(typeof(Samples.Raft.OpensSocket), "System.Net.Sockets.Socket")]
    [InlineData(typeof(Samples.Raft.Logs), "Microsoft.Extensions.Logging.ILogger")]
    [InlineData(typeof(Samples.Raft.HashesPerProcess), "System.HashCode")]
    public void Impure_code_is_seen(Type sample, string expected) =>
        Assert.Contains(BannedApis.Pure.Violations(DependencyRuleTests.Compiled(sample)), violation =>
            violation.Contains(expected, StringComparison.Ordinal));

    [Theory]
    [InlineData(typeof(Samples.Partitions.RunsTask), "System.Threading.Tasks.Task::Run")]
    [InlineData(typeof(Samples.Partitions.Delays), "System.Threading.Tasks.Task::Delay")]
    [InlineData(typeof(Samples.Partitions.TakesSystemClock), "System.TimeProvider::get_System")]
    [InlineData(typeof(Samples.Raft.ReadsClock), "System.DateTime")]
    [InlineData(typeof(Samples.Raft.MeasuresTime), "System.Diagnostics.Stopwatch")]
    [InlineData(typeof(Samples.Raft.DrawsRandom), "System.Random")]
    [InlineData(typeof(Samples.Raft.SetsTimer), "System.Threading.Timer")]
    [InlineData(typeof(Samples.Raft.StartsThread), "System.Threading.Thread")]
    public void Unowned_work_is_seen(Type sample, string expected) =>
        Assert.Contains(BannedApis.Owned.Violations(DependencyRuleTests.Compiled(sample)), violation =>
            violation.Contains(expected, StringComparison.Ordinal));

    [Fact]
    public void Pure_code_is_not() =>
        Findings.AssertNone(BannedApis.Pure.Violations(DependencyRuleTests.Compiled(typeof(PlainValue))));

    private static IEnumerable<TypeDefinition> TypesOf(string folder)
    {
        string name = "Kahuna.Server." + folder;
        List<TypeDefinition> types =
        [
            .. Product.Server.Types.Where(
                type => type.Namespace == name || type.Namespace.StartsWith(name + ".", StringComparison.Ordinal)),
        ];

        // An empty folder would pass without having been looked at.
        Assert.NotEmpty(types);
        return types;
    }
}
