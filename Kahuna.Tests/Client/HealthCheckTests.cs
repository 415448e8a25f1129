using Kahuna.Client;
using Kahuna.Client.DependencyInjection;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Outcomes;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Diagnostics.HealthChecks;

namespace Kahuna.Tests.Client;

/// <summary>The health check of the SDK: healthy only when each partition answers a read in time.</summary>
public sealed class HealthCheckTests
{
    /// <summary>A page of a range without names.</summary>
    internal static FakeReply NoNames { get; } = Page();

    [Fact]
    public async Task It_is_healthy_when_each_partition_answers()
    {
        FakeCluster cluster = new(nodes: 1, partitions: 3);
        cluster[1].Answer = static _ => NoNames;
        HealthReportEntry entry = await CheckAsync(cluster, LastNet.Span);
        Assert.Equal((HealthStatus.Healthy, "Every partition answers."), (entry.Status, entry.Description));
    }

    [Theory]
    [InlineData(HealthStatus.Unhealthy)]
    [InlineData(HealthStatus.Degraded)]
    public async Task It_fails_when_one_does_not_answer_in_time(HealthStatus status)
    {
        FakeCluster cluster = new(nodes: 1, partitions: 3);
        cluster[1].Answer = static request => request.WaitingMs == 2 ? null : NoNames;
        HealthReportEntry entry = await CheckAsync(cluster, TimeSpan.FromMilliseconds(300), status);
        Assert.Equal(
            (status, "Not every partition answered within 0.3 s."), (entry.Status, entry.Description));
    }

    [Fact]
    public async Task It_says_what_the_node_says()
    {
        FakeCluster cluster = new();
        const string Sentence = "The permission read is missing on all names.";
        cluster[1].Answer = static _ => new FakeReply(
            OutcomeStatus.PermissionDenied, Value: System.Text.Encoding.UTF8.GetBytes(Sentence));
        HealthReportEntry entry = await CheckAsync(cluster, LastNet.Span);
        Assert.Equal(HealthStatus.Unhealthy, entry.Status);
        Assert.Contains(Sentence, entry.Description, StringComparison.Ordinal);
    }

    [Fact]
    public async Task Without_a_node_it_fails_in_time()
    {
        await using ServiceProvider services = Services(
            static services => services.AddKahuna(
                static options => options.Endpoints.Add(new Uri("https://127.0.0.1:1"))),
            TimeSpan.FromMilliseconds(300),
            null);
        HealthReport report = await services.GetRequiredService<HealthCheckService>().CheckHealthAsync()
            .WaitAsync(Wait.Longest);
        HealthReportEntry entry = Assert.Single(report.Entries).Value;
        Assert.Equal(HealthStatus.Unhealthy, entry.Status);
        Assert.Equal("Not every partition answered within 0.3 s: no node is connected.", entry.Description);
    }

    [Fact]
    public void A_time_is_more_than_nothing() => Assert.Throws<ArgumentOutOfRangeException>(
        static () => new ServiceCollection().AddHealthChecks().AddKahuna(timeout: TimeSpan.Zero));

    private static async Task<HealthReportEntry> CheckAsync(
        FakeCluster cluster, TimeSpan timeout, HealthStatus? status = null)
    {
        await using KahunaClient client = cluster.Client();
        await using ServiceProvider services = Services(services => services.AddSingleton(client), timeout, status);
        HealthReport report = await services.GetRequiredService<HealthCheckService>().CheckHealthAsync()
            .WaitAsync(Wait.Longest);
        return Assert.Single(report.Entries, static entry => entry.Key == "kahuna").Value;
    }

    private static ServiceProvider Services(
        Action<IServiceCollection> add, TimeSpan timeout, HealthStatus? status)
    {
        ServiceCollection services = new();
        services.AddLogging();
        add(services);
        services.AddHealthChecks().AddKahuna(timeout: timeout, failureStatus: status, tags: ["ready"]);
        return services.BuildServiceProvider();
    }

    private static FakeReply Page()
    {
        ByteBuffer page = ByteBuffer.Rent();
        RangePage.WriteHeader(page, [], 0);
        FakeReply reply = new(OutcomeStatus.Found, Value: page.Written.ToArray());
        page.Return();
        return reply;
    }
}
