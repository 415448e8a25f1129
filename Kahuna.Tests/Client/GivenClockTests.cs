using Kahuna.Client;
using Kahuna.Client.Outcomes;

namespace Kahuna.Tests.Client;

/// <summary>
/// A client waits by the clock that it is given: nothing ends by the real one, and everything by the given one.
/// </summary>
public sealed class GivenClockTests
{
    [Fact]
    public async Task The_wait_for_a_first_connection_ends_by_the_given_clock()
    {
        ManualTime time = new();
        FakeCluster cluster = new();
        cluster[1].IsDown = true;
        await using KahunaClient client = cluster.Client(options =>
        {
            options.TimeProvider = time;
            options.ConnectTimeout = TimeSpan.FromSeconds(3);
        });
        Task<ClusterDescription> waits = client.DescribeAsync().AsTask();
        time.Advance(TimeSpan.FromSeconds(2));
        Assert.False(waits.IsCompleted);
        time.Advance(TimeSpan.FromSeconds(2));
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(() => waits.WaitAsync(Wait.Longest));
        Assert.Equal(KahunaErrorCode.Unavailable, failure.Code);
    }
}
