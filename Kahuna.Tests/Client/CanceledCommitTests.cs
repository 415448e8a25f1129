using System.Text;
using Kahuna.Client;
using Kahuna.Client.Connection;
using Kahuna.Client.Coordination;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Microsoft.Extensions.Logging.Abstractions;

namespace Kahuna.Tests.Client;

/// <summary>What a client does for a transaction over several partitions whose caller has gone.</summary>
public sealed class CanceledCommitTests : IAsyncDisposable
{
    private readonly FakeCluster _cluster = new(partitions: 2);
    private readonly ManualTime _time = new();
    private readonly ClusterConnection _connection;
    private readonly TransactionCoordinator _coordinator;
    private readonly string _first = PartReplies.KeyIn(0);
    private readonly string _second = PartReplies.KeyIn(1);

    public CanceledCommitTests()
    {
        KahunaClientOptions options = new() { RequestTimeout = TimeSpan.FromMinutes(5), TimeProvider = _time };
        options.Endpoints.Add(_cluster[1].Endpoint);
        ConnectionPorts ports = new(_cluster, _time, Context: null, Seed: 7) { Patience = Wait.Longest };
        _connection = new ClusterConnection(options.ToSettings(), ports, NullLogger.Instance);
        _coordinator = new TransactionCoordinator(_connection, ports, attemptsMax: 1);
    }

    /// <summary>
    /// Abandoned by a client in a hurry, decisions would fill the anchor for ten minutes each. There is one place for
    /// attempts, so that a second transaction begins when everything of the first has ended.
    /// </summary>
    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task After_a_cancellation_the_anchor_forgets_when_its_part_has_answered(bool anchorAnswers)
    {
        string? id = null;
        _cluster[1].Answer = request =>
        {
            id ??= IdOf(request);
            return request.Kind == CommandKind.TransactionPrepare
                && IdOf(request) == id
                && (request.Key == _second || !anchorAnswers) ? null : Usual(request);
        };
        using CancellationTokenSource end = new();
        Task canceled = _coordinator.RunAsync(Write(TimeSpan.FromSeconds(1)), end.Token);
        await Wait.UntilAsync(() => Steps().Length == 2);
        await end.CancelAsync();
        await Assert.ThrowsAsync<KahunaCanceledException>(() => canceled);

        Task next = _coordinator.RunAsync(Write(patience: null), CancellationToken.None);
        await Wait.UntilAsync(_time, () => Steps().Any(step => step.Id != Steps()[0].Id));
        await next.WaitAsync(Wait.Longest);
        CommandKind[] kinds = [.. Steps().Where(step => step.Id == Steps()[0].Id).Select(static step => step.Kind)];
        Assert.Equal(
            (2, 2, anchorAnswers ? 1 : 0),
            (
                kinds.Count(static kind => kind == CommandKind.TransactionDecide),
                kinds.Count(static kind => kind == CommandKind.TransactionFinish),
                kinds.Count(static kind => kind == CommandKind.TransactionForget)));
    }

    public ValueTask DisposeAsync() => _connection.DisposeAsync();

    private CommitRequest Write(TimeSpan? patience)
    {
        ByteBuffer body = ByteBuffer.Rent();
        TransactionBody.WriteHeader(body, conditions: 0, then: 2, @else: 0);
        foreach (string key in new[] { _first, _second })
        {
            CommandList.Append(body, new Command
            {
                Kind = CommandKind.Set,
                Durability = Durability.Persistent,
                Key = Encoding.UTF8.GetBytes(key),
                Value = "1"u8,
            });
        }

        CommitRequest request = new() { Body = body.Written.ToArray(), Patience = patience };
        body.Return();
        return request;
    }

    /// <summary>The steps of transactions that were received, in order.</summary>
    private (CommandKind Kind, string Id)[] Steps() =>
    [
        .. _cluster[1].Received
            .Where(static request => request.Value.Length >= TransactionId.Bytes)
            .Select(static request => (request.Kind, IdOf(request))),
    ];

    private static string IdOf(FakeRequest request) => TransactionId.Read(request.Value).ToString();

    private static FakeReply Usual(FakeRequest request)
    {
        Command.TryRead(request.Bytes, out Command command);
        return PartReplies.Usual(request.Kind, command.Number);
    }
}
