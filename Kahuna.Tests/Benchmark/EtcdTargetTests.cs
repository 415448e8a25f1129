using Google.Protobuf;
using Kahuna.Benchmark.Targets;
using Kahuna.Benchmark.Targets.Etcd;

namespace Kahuna.Tests.Benchmark;

/// <summary>The etcd target against a small server in this process.</summary>
public sealed class EtcdTargetTests
{
    [Fact]
    public async Task Puts_and_ranges()
    {
        await using FakeEtcdServer server = await FakeEtcdServer.StartAsync();
        await using EtcdTarget target = Create(server);
        TargetDescription description = await target.ConnectAsync(CancellationToken.None);
        Assert.Equal(
            ("etcd", "3.9.9", server.Endpoint),
            (description.Server, description.ServerVersion, description.Endpoints.Single()));

        IKeyValueSession session = Open(target);
        Assert.Equal(OperationResult.Miss, await session.GetAsync("bench:1"));
        Assert.Equal(OperationResult.Success, await session.SetAsync("bench:1", new byte[] { 1, 2, 3 }));
        Assert.Equal(OperationResult.Success, await session.GetAsync("bench:1"));
        Assert.Equal([1, 2, 3], server.Values[ByteString.CopyFromUtf8("bench:1")].ToByteArray());
    }

    [Fact]
    public async Task A_transaction_is_one_request()
    {
        await using FakeEtcdServer server = await FakeEtcdServer.StartAsync();
        await using EtcdTarget target = Create(server, "--workload transaction");
        await target.ConnectAsync(CancellationToken.None);
        ITransactionSession session = (ITransactionSession)target.OpenSession(0);
        TransactionInput input = new(["a", "b"], ["c", "d"], new byte[] { 7 });
        Assert.Equal(OperationResult.Success, await session.CommitAsync(input));
        Assert.Equal(["c", "d"], server.Values.Keys.Select(static key => key.ToStringUtf8()).Order());
        server.IsFull = true;
        EtcdException refused = await Assert.ThrowsAsync<EtcdException>(async () => await session.CommitAsync(input));
        Assert.StartsWith("ResourceExhausted: ", refused.Message, StringComparison.Ordinal);
    }

    [Fact]
    public async Task Workers_share_the_connections()
    {
        await using FakeEtcdServer server = await FakeEtcdServer.StartAsync();
        await using EtcdTarget target = Create(server, "--connections 2");
        await target.ConnectAsync(CancellationToken.None);
        IEnumerable<Task> sets = Enumerable.Range(0, 20)
            .Select(async worker => await Open(target, worker).SetAsync($"bench:{worker}", new byte[10]));
        await Task.WhenAll(sets);
        Assert.Equal(20, server.Values.Count);
        Assert.Equal(2, server.Connections);
    }

    [Fact]
    public async Task Refusal_is_an_error_and_silence_a_timeout()
    {
        await using FakeEtcdServer server = await FakeEtcdServer.StartAsync();
        await using EtcdTarget target = Create(server);
        await target.ConnectAsync(CancellationToken.None);
        server.IsFull = true;
        IKeyValueSession session = Open(target);
        EtcdException refused =
            await Assert.ThrowsAsync<EtcdException>(async () => await session.SetAsync("a", default));
        Assert.False(session.IsTimeout(refused));
        Assert.Equal("ResourceExhausted: etcdserver: mvcc: database space exceeded", refused.Message);
        server.IsStuck = true;
        await using EtcdTarget impatient = Create(server, timeout: 0.3);
        await impatient.ConnectAsync(CancellationToken.None);
        IKeyValueSession timed = Open(impatient);
        EtcdException late = await Assert.ThrowsAsync<EtcdException>(async () => await timed.SetAsync("a", default));
        Assert.True(timed.IsTimeout(late));
        // The server may see the deadline pass first, and has words of its own.
        Assert.StartsWith("DeadlineExceeded: ", late.Message, StringComparison.Ordinal);
    }

    [Fact]
    public async Task Who_is_not_there_is_named_and_found_later()
    {
        FakeEtcdServer server = await FakeEtcdServer.StartAsync();
        Uri endpoint = new(server.Endpoint);
        await using EtcdTarget target = Create(server);
        await server.DisposeAsync();
        TargetException missing = await Assert.ThrowsAsync<TargetException>(
            () => target.ConnectAsync(CancellationToken.None));
        Assert.Equal(
            $"etcd at {endpoint.Authority} cannot be reached: Unavailable: Connection refused ({endpoint.Authority})",
            missing.Message);
        EtcdException failure = await Assert.ThrowsAsync<EtcdException>(async () => await Open(target).GetAsync("a"));
        Assert.False(Open(target).IsTimeout(failure));
        Assert.StartsWith("Unavailable: Connection refused", failure.Message, StringComparison.Ordinal);
        await using FakeEtcdServer later = await FakeEtcdServer.StartAsync(endpoint.Port);
        Assert.Equal(OperationResult.Miss, await Open(target).GetAsync("a"));
    }

    /// <summary>What a test does not time has the time that a busy machine may need.</summary>
    private static EtcdTarget Create(FakeEtcdServer server, string arguments = "", double timeout = 120)
    {
        string times = FormattableString.Invariant($"--connect-timeout 120 --timeout {timeout}");
        return new(BenchLine.Read($"-c {server.Endpoint} --target etcd {times} {arguments}").Options);
    }

    private static IKeyValueSession Open(EtcdTarget target, int worker = 0) =>
        (IKeyValueSession)target.OpenSession(worker);
}
