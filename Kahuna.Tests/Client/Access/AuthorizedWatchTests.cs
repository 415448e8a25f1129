using Kahuna.Client;
using Kahuna.Client.Connection;
using Kahuna.Client.Watches;
using Kahuna.Tests.Client.Watches;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Watches;

namespace Kahuna.Tests.Client.Access;

/// <summary>How watches end when the user may not have them.</summary>
public sealed class AuthorizedWatchTests
{
    private static readonly StreamStatus s_unauthenticated = new(16, "The user is disabled.");

    [Fact]
    public async Task A_watch_ends_when_its_right_is_taken_away_and_others_go_on()
    {
        WatchedCluster cluster = new();
        await using KahunaClient client = cluster.Fake.Client();
        (IAsyncEnumerator<WatchEvent> secret, Task<bool> first) = await WatchedCluster.BeginAsync(client, "secret/");
        (IAsyncEnumerator<WatchEvent> open, Task<bool> other) = await WatchedCluster.BeginAsync(client, "open/");
        FakeWatchStream stream = await cluster.StreamAsync(watches: 2);
        stream.Notice(
            WatchNoticeCode.PermissionDenied, stream.IdOf("secret/"),
            status: (uint)OutcomeStatus.PermissionDenied, text: "The user lacks Watch on the prefix \"secret/\"");
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(() => first.WaitAsync(Wait.Longest));
        Assert.Equal(
            (KahunaErrorCode.PermissionDenied, "The user lacks Watch on the prefix \"secret/\"."),
            (failure.Code, failure.Message));
        Assert.False(other.IsCompleted);
        Assert.False(stream.IsEnded);
        await secret.DisposeAsync();
    }

    [Fact]
    public async Task A_watch_that_may_not_be_begun_ends()
    {
        WatchedCluster cluster = new();
        cluster.Fake[1].OnWatch = static (stream, watch) => stream.Notice(
            WatchNoticeCode.PermissionDenied, watch.Id, status: (uint)OutcomeStatus.PermissionDenied);
        await using KahunaClient client = cluster.Fake.Client();
        (_, Task<bool> first) = await WatchedCluster.BeginAsync(client, "secret/");
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(() => first.WaitAsync(Wait.Longest));
        Assert.Equal(KahunaErrorCode.PermissionDenied, failure.Code);
        Assert.Equal(1, cluster.Fake[1].WatchAttempts);
    }

    [Fact]
    public async Task All_watches_end_when_no_node_knows_the_user_any_longer()
    {
        WatchedCluster cluster = new();
        await using KahunaClient client = cluster.Fake.Client(
            static options => options.Credentials = KahunaCredentials.Password("app", "p"));
        (_, Task<bool> first) = await WatchedCluster.BeginAsync(client, "a/");
        (_, Task<bool> second) = await WatchedCluster.BeginAsync(client, "b/");
        FakeWatchStream stream = await cluster.StreamAsync(watches: 2);
        Assert.StartsWith("Basic ", Assert.Single(cluster.Fake[1].ShownForWatches), StringComparison.Ordinal);
        cluster.Fake[1].AdmitWatches = static _ => s_unauthenticated;
        stream.End(s_unauthenticated);
        foreach (Task<bool> watch in new[] { first, second })
        {
            KahunaException failure = await Assert.ThrowsAsync<KahunaException>(() => watch.WaitAsync(Wait.Longest));
            Assert.Equal(
                (KahunaErrorCode.Unauthenticated, "The user is disabled."), (failure.Code, failure.Message));
        }

        Assert.Equal(1, cluster.Fake[1].WatchAttempts);
    }

    [Fact]
    public async Task A_watch_goes_on_with_a_renewed_token()
    {
        WatchedCluster cluster = new();
        int asked = 0;
        await using KahunaClient client = cluster.Fake.Client(
            options => options.Credentials = KahunaCredentials.Token(_ => new($"t{++asked}")));
        (_, Task<bool> first) = await WatchedCluster.BeginAsync(client, "a/");
        FakeWatchStream stream = await cluster.StreamAsync();
        cluster.Fake[1].AdmitWatches = static header => header == "Bearer t1" ? s_unauthenticated : null;
        stream.End(s_unauthenticated);
        FakeWatchStream next = await cluster.StreamAsync(except: stream);
        Assert.False(first.IsCompleted);
        Assert.Equal("Bearer t2", cluster.Fake[1].ShownForWatches.Last());
        Assert.Equal("a/", Assert.Single(next.Watches.Values).Name);
    }

    [Fact]
    public async Task Another_node_is_asked_before_watches_end()
    {
        WatchedCluster cluster = new(nodes: 2);
        cluster.Fake[1].AdmitWatches = static _ => s_unauthenticated;
        await using KahunaClient client = await cluster.Fake.ConnectedAsync(
            static options => options.Credentials = KahunaCredentials.Password("app", "p"));
        (_, Task<bool> first) = await WatchedCluster.BeginAsync(client, "a/");
        Assert.Same(cluster.Fake[2], (await cluster.StreamAsync()).Node);
        Assert.False(first.IsCompleted);
    }
}
