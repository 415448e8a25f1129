using System.Text;
using Kahuna.Benchmark.Targets;
using Kahuna.Benchmark.Targets.Redis;

namespace Kahuna.Tests.Benchmark;

/// <summary>The redis target against a small server in this process.</summary>
public sealed class RedisTargetTests
{
    [Fact]
    public async Task Sets_and_gets_over_one_connection()
    {
        await using FakeRedisServer server = new();
        await using RedisTarget target = Create(server);
        TargetDescription description = await target.ConnectAsync(CancellationToken.None);
        Assert.Equal(("redis", "7.9.9", $"redis://{server.Endpoint}"), (description.Server, description.ServerVersion, description.Endpoints.Single()));

        IKeyValueSession session = Open(target);
        Assert.Equal(OperationResult.Miss, await session.GetAsync("bench:1"));
        Assert.Equal(OperationResult.Success, await session.SetAsync("bench:1", new byte[100_000]));
        Assert.Equal(OperationResult.Success, await session.GetAsync("bench:1"));
        Assert.Equal(OperationResult.Success, await session.SetAsync("bench:2", default));
        Assert.Equal(OperationResult.Success, await session.GetAsync("bench:2"));
        Assert.Equal(1, server.Connections);
    }

    [Fact]
    public async Task Many_workers_share_the_connections()
    {
        await using FakeRedisServer server = new();
        await using RedisTarget target = Create(server, "--connections 3");
        await target.ConnectAsync(CancellationToken.None);
        await Task.WhenAll(Enumerable.Range(0, 50).Select(async worker =>
        {
            IKeyValueSession session = Open(target, worker);
            for (int i = 0; i < 50; i++)
            {
                Assert.Equal(
                    OperationResult.Success, await session.SetAsync($"bench:{worker}", Encoding.UTF8.GetBytes($"{i}")));
                Assert.Equal(OperationResult.Success, await session.GetAsync($"bench:{worker}"));
            }
        }));
        Assert.Equal(3, server.Connections);
    }

    [Theory]
    [InlineData("$-1\r\n")]
    [InlineData(":7\r\n")]
    [InlineData("*2\r\n$1\r\na\r\n*1\r\n$-1\r\n")]
    public async Task A_script_gets_its_parameters_whatever_it_returns(string reply)
    {
        await using FakeRedisServer server = new() { ScriptReply = reply };
        await using RedisTarget target = Create(server, "--workload script");
        await target.ConnectAsync(CancellationToken.None);
        IScriptSession session = (IScriptSession)target.OpenSession(0);
        ScriptInput input = new("bench:1", Encoding.UTF8.GetBytes("value"), 42);
        Assert.Equal(OperationResult.Success, await session.RunAsync("return KEYS[1]", input));
        Assert.Equal(["EVAL", "return KEYS[1]", "1", "bench:1", "value", "42"], server.LastScript);
    }

    [Fact]
    public async Task A_script_that_fails_is_a_failure()
    {
        await using FakeRedisServer server = new() { ScriptReply = "-ERR user_script:1: no\r\n" };
        await using RedisTarget target = Create(server, "--workload script");
        await target.ConnectAsync(CancellationToken.None);
        IScriptSession session = (IScriptSession)target.OpenSession(0);
        RequestFailedException failure = await Assert.ThrowsAsync<RequestFailedException>(
            async () => await session.RunAsync("error('no')", new ScriptInput("a", default, 1)));
        Assert.Equal("ERR user_script:1: no", failure.Message);
    }

    [Fact]
    public async Task Error_reply_is_a_failure_that_names_the_reason()
    {
        await using FakeRedisServer server = new() { FailAfter = 1 };
        await using RedisTarget target = Create(server);
        await target.ConnectAsync(CancellationToken.None);
        RequestFailedException failure =
            await Assert.ThrowsAsync<RequestFailedException>(async () => await Open(target).SetAsync("a", default));
        Assert.Equal("MISCONF the disk is full", failure.Message);
        Assert.False(Open(target).IsTimeout(failure));
    }

    [Fact]
    public async Task The_first_question_has_the_time_of_the_connection()
    {
        await using FakeRedisServer server = new() { FirstReplyAfter = TimeSpan.FromSeconds(0.5) };
        await using RedisTarget target = Create(server, timeout: 0.02);
        TargetDescription description = await target.ConnectAsync(CancellationToken.None);
        Assert.Equal("7.9.9", description.ServerVersion);
    }

    [Fact]
    public async Task Silence_is_a_timeout()
    {
        await using FakeRedisServer server = new() { SilentAfter = 1 };
        await using RedisTarget target = Create(server, timeout: 0.2);
        await target.ConnectAsync(CancellationToken.None);
        Exception failure = await Assert.ThrowsAsync<TimeoutException>(async () => await Open(target).GetAsync("a"));
        Assert.True(Open(target).IsTimeout(failure));
    }

    [Fact]
    public async Task Broken_connection_fails_its_requests_and_comes_back()
    {
        await using FakeRedisServer server = new();
        await using RedisTarget target = Create(server);
        await target.ConnectAsync(CancellationToken.None);
        IKeyValueSession session = Open(target);
        await session.SetAsync("bench:1", default);
        server.BreakConnections();
        int failures = 0;
        while (true)
        {
            try
            {
                Assert.Equal(OperationResult.Success, await session.GetAsync("bench:1"));
                break;
            }
            catch (IOException)
            {
                // Bounded: a connection that does not come back fails the test here.
                Assert.True(++failures < 10_000);
                await Task.Delay(1);
            }
        }
    }

    [Theory]
    [InlineData("")]
    [InlineData("+OK")]
    [InlineData("+OK\r")]
    [InlineData("$5\r\nabc")]
    [InlineData("$5\r\nabcde\r")]
    [InlineData("*1\r\n")]
    [InlineData("*2\r\n:1\r\n")]
    public void Incomplete_reply_waits_for_more(string bytes) =>
        Assert.False(RespReply.TryRead(Encoding.UTF8.GetBytes(bytes), out _, out _));

    [Theory]
    [InlineData("+OK\r\nrest", "Value", "OK", 5)]
    [InlineData(":42\r\n", "Value", "42", 5)]
    [InlineData("-ERR no\r\n", "Error", "ERR no", 9)]
    [InlineData("$3\r\na\r\n\r\n", "Value", "a\r\n", 9)]
    [InlineData("$0\r\n\r\n", "Value", "", 6)]
    [InlineData("$-1\r\n", "Nil", "", 5)]
    [InlineData("*-1\r\n", "Nil", "", 5)]
    [InlineData("*0\r\n", "Value", "", 4)]
    [InlineData("*2\r\n:1\r\n+OK\r\n+x", "Value", ":1\r\n+OK\r\n", 13)]
    public void Replies_are_told_apart(string bytes, string kind, string text, int length)
    {
        Assert.True(RespReply.TryRead(Encoding.UTF8.GetBytes(bytes), out RespReply reply, out int used));
        Assert.Equal((kind, text, length), (reply.Kind.ToString(), reply.ToText(), used));
    }

    [Theory]
    [InlineData("*x\r\n")]
    [InlineData("HTTP/1.1 400\r\n")]
    [InlineData("$x\r\n")]
    public void Anything_else_is_refused(string bytes) =>
        Assert.Throws<IOException>(() => RespReply.TryRead(Encoding.UTF8.GetBytes(bytes), out _, out _));

    /// <summary>What a test does not time has the time that a busy machine may need.</summary>
    private static RedisTarget Create(FakeRedisServer server, string arguments = "", double timeout = 120)
    {
        string times = FormattableString.Invariant($"--connect-timeout 120 --timeout {timeout}");
        return new(BenchLine.Read($"-c {server.Endpoint} --target redis {times} {arguments}").Options);
    }

    private static IKeyValueSession Open(RedisTarget target, int worker = 0) =>
        (IKeyValueSession)target.OpenSession(worker);
}
