using Kahuna.Client;
using Kahuna.Client.Connection;
using Kahuna.Client.Outcomes;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Client.Access;

/// <summary>What a client does when nodes ask who it is.</summary>
public sealed class AuthorizedConnectionTests
{
    private static readonly StreamStatus s_unauthenticated = new(16, "The token was revoked.");

    [Fact]
    public async Task Every_stream_shows_the_credentials()
    {
        FakeCluster cluster = new(nodes: 3);
        await using KahunaClient client = await cluster.ConnectedAsync(
            static options => options.Credentials = KahunaCredentials.Token("abc"));
        Assert.All(cluster.Nodes, static node => Assert.Equal(["Bearer abc"], node.Shown));
    }

    [Fact]
    public async Task Without_credentials_nothing_is_shown()
    {
        FakeCluster cluster = new();
        await using KahunaClient client = await cluster.ConnectedAsync();
        Assert.Equal([null], cluster[1].Shown);
    }

    [Fact]
    public async Task Refused_credentials_fail_what_waits_at_once_with_the_reason()
    {
        FakeCluster cluster = new();
        cluster[1].Admit = static _ => s_unauthenticated;
        await using KahunaClient client = cluster.Client(
            static options => options.Credentials = KahunaCredentials.Password("app", "wrong"));
        KahunaException failure = await FailedAsync(client.KeyValues.SetAsync("k", "v"));
        Assert.Equal(
            (KahunaErrorCode.Unauthenticated, OperationOutcome.DidNotHappen, "The token was revoked."),
            (failure.Code, failure.Outcome, failure.Message));
        Assert.Equal(KahunaErrorCode.Unauthenticated, (await FailedAsync(client.DescribeAsync())).Code);
    }

    [Fact]
    public async Task A_client_that_may_not_connect_is_told_so()
    {
        FakeCluster cluster = new();
        cluster[1].Admit = static _ => new StreamStatus(7, "");
        await using KahunaClient client = cluster.Client();
        KahunaException failure = await FailedAsync(client.KeyValues.GetAsync("k"));
        Assert.Equal(
            (KahunaErrorCode.PermissionDenied, "The user may not connect."), (failure.Code, failure.Message));
    }

    [Fact]
    public async Task The_next_operation_tries_again_after_a_pause()
    {
        ManualTime time = new();
        FakeCluster cluster = new();
        cluster[1].Admit = static _ => s_unauthenticated;
        cluster[1].Answer = static _ => FakeReply.Applied();
        await using KahunaClient client = cluster.Client(options =>
        {
            options.TimeProvider = time;
            options.Credentials = KahunaCredentials.Password("app", "p");
        });
        Task<SetResult> first = Wait.ForAsync(client.KeyValues.SetAsync("k", "1"));
        await Wait.UntilAsync(time, () => first.IsCompleted);
        await Assert.ThrowsAsync<KahunaException>(() => first);
        int attempts = cluster[1].Attempts;
        Task<SetResult> next = Wait.ForAsync(client.KeyValues.SetAsync("k", "2"));
        await Task.Delay(20);
        Assert.False(next.IsCompleted, "an answer came without an attempt");
        Assert.Equal(attempts, cluster[1].Attempts);
        cluster[1].Admit = static _ => null;
        await Wait.UntilAsync(time, () => next.IsCompleted);
        Assert.True((await next).Applied);
    }

    [Fact]
    public async Task Refusals_do_not_end_in_a_tight_loop()
    {
        ManualTime time = new();
        FakeCluster cluster = new();
        cluster[1].Admit = static _ => s_unauthenticated;
        int asked = 0;
        await using KahunaClient client = cluster.Client(options =>
        {
            options.TimeProvider = time;
            options.Credentials = KahunaCredentials.Token(_ => new($"t{++asked}"));
        });
        for (int i = 0; i < 12; i++)
        {
            Task<SetResult> refused = Wait.ForAsync(client.KeyValues.SetAsync("k", "v"));
            await Wait.UntilAsync(time, () => refused.IsCompleted);
            Assert.Equal(
                KahunaErrorCode.Unauthenticated, (await Assert.ThrowsAsync<KahunaException>(() => refused)).Code);
        }

        // Two for the first operation, which renews them; one for each that follows, and those of pauses that end.
        Assert.InRange(cluster[1].Attempts, 13, 30);
        Assert.Equal(cluster[1].Attempts, asked);
    }

    [Fact]
    public async Task A_node_that_does_not_know_the_user_yet_is_not_believed_while_another_one_does()
    {
        FakeCluster cluster = new(nodes: 2);
        cluster[1].Admit = static _ => s_unauthenticated;
        cluster.Leaders = [(2, 1)];
        cluster[2].Answer = static _ => FakeReply.Applied();
        await using KahunaClient client = cluster.Client(
            static options => options.Credentials = KahunaCredentials.Password("app", "p"), 1, 2);
        Assert.True((await Wait.ForAsync(client.KeyValues.SetAsync("k", "v"))).Applied);
    }

    [Fact]
    public async Task A_stream_that_ends_as_unauthenticated_fails_what_was_under_way()
    {
        FakeCluster cluster = new();
        await using KahunaClient client = await cluster.ConnectedAsync(
            static options => options.Credentials = KahunaCredentials.Password("app", "p"));
        Task<SetResult> set = Wait.ForAsync(client.KeyValues.SetAsync("k", "v"));
        Task<GetResult> get = Wait.ForAsync(client.KeyValues.GetAsync("k"));
        cluster[1].Next();
        cluster[1].Next();
        cluster[1].Admit = static _ => s_unauthenticated;
        cluster[1].Connection.End(s_unauthenticated);
        KahunaException write = await Assert.ThrowsAsync<KahunaException>(() => set);
        Assert.Equal((KahunaErrorCode.Unauthenticated, OperationOutcome.Unknown), (write.Code, write.Outcome));
        KahunaException read = await Assert.ThrowsAsync<KahunaException>(() => get);
        Assert.Equal((KahunaErrorCode.Unauthenticated, OperationOutcome.DidNotHappen), (read.Code, read.Outcome));
    }

    [Fact]
    public async Task An_expired_token_is_renewed_and_the_operation_sent_again_under_its_number()
    {
        FakeCluster cluster = new();
        int asked = 0;
        cluster[1].Admit = header => header == $"Bearer t{asked}" ? null : s_unauthenticated;
        await using KahunaClient client = await cluster.ConnectedAsync(
            options => options.Credentials = KahunaCredentials.Token(_ => new($"t{++asked}")));
        Task<SetResult> set = Wait.ForAsync(client.KeyValues.SetAsync("k", "v"));
        FakeRequest first = cluster[1].Next();
        cluster[1].Answer = static _ => FakeReply.Applied(5);
        cluster[1].Connection.End(s_unauthenticated);
        Assert.Equal(5, (await set).Revision.Value);
        Assert.Equal(first.CallNumber, cluster[1].Received.Last().CallNumber);
        Assert.Equal(["Bearer t1", "Bearer t2"], cluster[1].Shown);
    }

    [Fact]
    public async Task An_operation_that_is_refused_as_unauthenticated_is_sent_again_once()
    {
        FakeCluster cluster = new(nodes: 2);
        int asked = 0;
        await using KahunaClient client = await cluster.ConnectedAsync(
            options => options.Credentials = KahunaCredentials.Token(_ => new($"t{++asked}")));
        foreach (FakeNode node in cluster.Nodes)
        {
            node.Answer = _ => node.Shown.Last() == "Bearer t1"
                ? new FakeReply(OutcomeStatus.Unauthenticated) : FakeReply.Applied(9);
        }

        Assert.Equal(9, (await Wait.ForAsync(client.KeyValues.SetAsync("k", "v"))).Revision.Value);
        foreach (FakeNode node in cluster.Nodes)
        {
            node.Answer = static _ => new FakeReply(OutcomeStatus.Unauthenticated);
        }

        KahunaException failure = await FailedAsync(client.KeyValues.SetAsync("k", "v"));
        Assert.Equal(
            (KahunaErrorCode.Unauthenticated, OperationOutcome.DidNotHappen), (failure.Code, failure.Outcome));
    }

    [Fact]
    public async Task A_password_that_is_refused_by_an_operation_is_not_sent_again()
    {
        FakeCluster cluster = new();
        cluster[1].Answer = static _ => new FakeReply(OutcomeStatus.Unauthenticated);
        await using KahunaClient client = await cluster.ConnectedAsync(
            static options => options.Credentials = KahunaCredentials.Password("app", "p"));
        Assert.Equal(
            KahunaErrorCode.Unauthenticated, (await FailedAsync(client.KeyValues.SetAsync("k", "v"))).Code);
        Assert.Single(cluster[1].Received);
    }

    [Fact]
    public async Task A_missing_right_ends_the_operation_with_the_sentence_of_the_node()
    {
        const string Sentence = "The user app lacks Write on the key \"wait_ms\".";
        FakeCluster cluster = new();
        cluster[1].Answer = static _ => new FakeReply(
            OutcomeStatus.PermissionDenied, Value: System.Text.Encoding.UTF8.GetBytes(Sentence));
        await using KahunaClient client = await cluster.ConnectedAsync();
        KahunaException failure = await FailedAsync(client.KeyValues.SetAsync("wait_ms", "v"));
        Assert.Equal(
            (KahunaErrorCode.PermissionDenied, OperationOutcome.DidNotHappen, Sentence),
            (failure.Code, failure.Outcome, failure.Message));
        Assert.Single(cluster[1].Received);
    }

    [Fact]
    public async Task An_old_token_is_not_shown_to_a_new_stream()
    {
        ManualTime time = new();
        FakeCluster cluster = new();
        int asked = 0;
        await using KahunaClient client = await cluster.ConnectedAsync(options =>
        {
            options.TimeProvider = time;
            options.Credentials = KahunaCredentials.Token(_ => new($"t{++asked}"), TimeSpan.FromMinutes(1));
        });
        time.Advance(TimeSpan.FromSeconds(30));
        cluster[1].Break();
        await Wait.UntilAsync(time, () => cluster[1].Shown.Count == 2);
        time.Advance(TimeSpan.FromSeconds(31));
        cluster[1].Break();
        await Wait.UntilAsync(time, () => cluster[1].Shown.Count == 3);
        Assert.Equal(["Bearer t1", "Bearer t1", "Bearer t2"], cluster[1].Shown);
    }

    [Fact]
    public async Task A_callback_that_throws_leaves_the_client_without_a_connection_and_is_named()
    {
        ManualTime time = new();
        FakeCluster cluster = new();
        bool isBroken = true;
        cluster[1].Answer = static _ => FakeReply.Applied();
        await using KahunaClient client = cluster.Client(options =>
        {
            options.TimeProvider = time;
            options.RequestTimeout = TimeSpan.FromSeconds(1);
            options.Credentials = KahunaCredentials.Token(
                _ => isBroken ? throw new InvalidOperationException("no issuer today") : new("t"));
        });
        Task<SetResult> set = Wait.ForAsync(client.KeyValues.SetAsync("k", "v"));
        await Wait.UntilAsync(time, () => set.IsCompleted);
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(() => set);
        Assert.Equal(KahunaErrorCode.Unavailable, failure.Code);
        Assert.Contains("no issuer today", failure.Message, StringComparison.Ordinal);
        Assert.Equal(0, cluster[1].Attempts);
        isBroken = false;
        Task<SetResult> next = Wait.ForAsync(client.KeyValues.SetAsync("k", "v"));
        await Wait.UntilAsync(time, () => next.IsCompleted);
        Assert.True((await next).Applied);
    }

    private static async Task<KahunaException> FailedAsync<T>(ValueTask<T> operation) =>
        await Assert.ThrowsAsync<KahunaException>(() => Wait.ForAsync(operation));
}
