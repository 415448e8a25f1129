using Kahuna.Client;
using Kahuna.Client.Connection;
using Kahuna.Client.Coordination;
using Kahuna.Wire;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;
using Microsoft.Extensions.Logging.Abstractions;

namespace Kahuna.Tests.Client;

/// <summary>When anchors are asked to forget decisions, and which ones.</summary>
public sealed class DecisionCleanupTests : IAsyncDisposable
{
    private const string Key = "a/x";

    private readonly FakeCluster _cluster = new(partitions: 2);
    private readonly ClusterConnection _connection;
    private readonly DecisionCleanup _cleanup;

    public DecisionCleanupTests()
    {
        KahunaClientOptions options = new() { RequestTimeout = TimeSpan.FromMinutes(5) };
        options.Endpoints.Add(_cluster[1].Endpoint);
        ConnectionPorts ports = new(_cluster, options.TimeProvider, Context: null, Seed: 7);
        _connection = new ClusterConnection(
            options.ToSettings(), ports with { Patience = Wait.Longest }, NullLogger.Instance);
        _cleanup = new DecisionCleanup(_connection);
    }

    [Fact]
    public async Task The_first_goes_at_once_and_what_comes_meanwhile_goes_together()
    {
        Task first = Forget(1);
        FakeRequest request = _cluster[1].Next();
        Assert.Equal([1ul], Ids(request));
        Task[] others = [Forget(2), Forget(3), Forget(4)];
        Assert.False(_cluster[1].Held.TryTake(out _));
        Answer(request, OutcomeStatus.Applied);
        await first.WaitAsync(Wait.Longest);
        request = _cluster[1].Next();
        Assert.Equal((CommandKind.TransactionForget, Key), (request.Kind, request.Key));
        Assert.Equal([2ul, 3, 4], Ids(request));
        Assert.All(others, static task => Assert.False(task.IsCompleted));
        Answer(request, OutcomeStatus.NotFound);
        await Task.WhenAll(others).WaitAsync(Wait.Longest);
    }

    [Fact]
    public async Task Partitions_do_not_wait_for_each_other()
    {
        Task first = Forget(1, partition: 0);
        Task second = Forget(2, partition: 1);
        FakeRequest[] requests = [_cluster[1].Next(), _cluster[1].Next()];
        Assert.Equal([1ul, 2], requests.SelectMany(Ids).Order().ToArray());
        Assert.All(requests, static request => Answer(request, OutcomeStatus.Applied));
        await Task.WhenAll(first, second).WaitAsync(Wait.Longest);
    }

    [Fact]
    public async Task A_request_has_a_bounded_number()
    {
        Task[] all = [.. Enumerable.Range(0, 2 * Limits.ForgottenTransactionsMax).Select(i => Forget((ulong)i))];
        int[] counts = new int[3];
        for (int i = 0; i < counts.Length; i++)
        {
            FakeRequest request = _cluster[1].Next();
            counts[i] = Ids(request).Length;
            Answer(request, OutcomeStatus.Applied);
        }

        await Task.WhenAll(all).WaitAsync(Wait.Longest);
        Assert.Equal([1, Limits.ForgottenTransactionsMax, Limits.ForgottenTransactionsMax - 1], counts);
    }

    [Fact]
    public async Task An_anchor_that_refuses_holds_up_nobody()
    {
        Task first = Forget(1);
        FakeRequest request = _cluster[1].Next();
        Task second = Forget(2);
        Answer(request, OutcomeStatus.InvalidArgument);
        await Task.WhenAll(first, second).WaitAsync(Wait.Longest);
        Assert.False(_cluster[1].Held.TryTake(out _));

        Task third = Forget(3);
        request = _cluster[1].Next();
        Assert.Equal([3ul], Ids(request));
        Answer(request, OutcomeStatus.Applied);
        await third.WaitAsync(Wait.Longest);
    }

    [Fact]
    public async Task A_closed_client_ends_what_waits()
    {
        Task first = Forget(1);
        _cluster[1].Next();
        Task second = Forget(2);
        await _connection.DisposeAsync();
        await Task.WhenAll(first, second).WaitAsync(Wait.Longest);
        await Forget(3).WaitAsync(Wait.Longest);
    }

    /// <inheritdoc/>
    public async ValueTask DisposeAsync() => await _connection.DisposeAsync();

    private Task Forget(ulong id, int partition = 0) =>
        _cleanup.ForgetAsync(partition, new CommitName(new TransactionId(0, id), 0, Key));

    private static void Answer(FakeRequest request, OutcomeStatus status) =>
        request.Connection.Reply(request, new FakeReply(status));

    private static ulong[] Ids(FakeRequest request) =>
        [.. request.Value.Chunk(TransactionId.Bytes).Select(static id => TransactionId.Read(id).Low)];
}
