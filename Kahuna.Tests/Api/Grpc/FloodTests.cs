using Grpc.Core;
using Grpc.Net.Client;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Hosting;
using Kahuna.Server.Transport;
using Kahuna.Tests.Api.Grpc.Protos;
using Kahuna.Tests.Hosting;
using Kahuna.Tests.Transport;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Http;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Logging;
using Microsoft.Extensions.Logging.Abstractions;

namespace Kahuna.Tests.Api.Grpc;

/// <summary>
/// More streams than a connection has room for: some wait or are refused, and the endpoint lives on. Floods of the
/// server itself: Cluster/ServerFloodTests.
/// </summary>
public sealed class FloodTests
{
    private const string Echo = "/kahuna.test.Streams/Echo";
    private const int HandfulOfLines = 5;

    private static readonly TimeSpan s_patience = LastNet.Span;

    [Fact]
    public async Task Streams_past_the_limit_of_a_connection_wait_for_their_turn()
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync(
            options: new CallLimits { StreamsPerConnectionMax = int.MaxValue });
        using GrpcChannel channel = TestChannels.To(host.Address);
        AsyncDuplexStreamingCall<EchoMessage, EchoMessage>[] calls =
            [
                .. Enumerable.Range(0, KestrelLimits.StreamsPerConnectionMax + 500)
                    .Select(_ => channel.DuplexStreaming<EchoMessage, EchoMessage>(Echo, EchoMessage.Parser)),
            ];
        await FloodClient.DescribeAsync(host.Channel);
        await Task.WhenAll(calls.Select(async call =>
        {
            using (call)
            {
                await call.RequestStream.WriteAsync(new EchoMessage());
                Assert.NotNull(await call.ReadAsync());
                await call.RequestStream.CompleteAsync();
                Assert.Null(await call.ReadAsync());
            }
        })).WaitAsync(s_patience);
        await FloodClient.DescribeAsync(host.Channel);
    }

    [Fact]
    public async Task Streams_that_do_not_wait_for_their_turn_are_refused_and_others_are_served()
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync();
        Task refused = FloodClient.OpenStreamsRudelyAsync(host.Address, Echo, streams: 20_000);
        await FloodClient.DescribeAsync(host.Channel);
        await refused.WaitAsync(s_patience);
        await FloodClient.DescribeAsync(host.Channel);
    }

    [Fact]
    public async Task A_connection_with_too_many_resets_is_closed()
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync();
        const int Streams = 50_000;
        int reset = await FloodClient.ResetStreamsUntilCutAsync(host.Address, Echo, Streams).WaitAsync(s_patience);
        Assert.InRange(reset, ConnectionQuota.Resets.Burst, Streams - 1);
        await FloodClient.DescribeAsync(host.Channel);
    }

    [Fact]
    public async Task A_call_that_was_reset_before_its_turn_is_not_begun()
    {
        ConnectionQuota share = new(new DefaultConnectionContext());
        DefaultHttpContext http = new() { RequestAborted = new CancellationToken(canceled: true) };
        http.Features.Set(share);
        CallGuard guard = new(
            new ServiceCollection().BuildServiceProvider(), new CallLimits(), [], NullLogger.Instance);
        for (int i = 0; i < ConnectionQuota.Resets.Burst; i++)
        {
            await guard.HandleAsync(http, static _ => throw new InvalidOperationException("It was begun."));
        }

        Assert.Empty(http.Response.Headers);
        Assert.Equal(StatusCodes.Status200OK, http.Response.StatusCode);
        Assert.False(Enumerable.Range(0, ConnectionQuota.Resets.Burst).All(_ => share.TryReset()));
    }

    [Fact]
    public async Task A_connection_with_some_resets_goes_on()
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync();
        Assert.True(await FloodClient.ResetStreamsAsync(host.Address, Echo, streams: 100).WaitAsync(s_patience));
    }

    [Fact]
    public async Task Rapid_resets_are_a_handful_of_lines_in_the_log()
    {
        LogRecorder said = new() { Level = LogLevel.Warning };
        LogRecorder kept = new() { Level = LogLevel.Warning };
        using ThrottledLoggers throttled = new(kept, new SteppedTime());
        using Tap loggers = new(throttled, said);
        await using GrpcTestHost host = await GrpcTestHost.StartAsync(
            log: loggers.CreateLogger("Kahuna.Grpc"), loggers: loggers);
        for (int floods = 0; floods < 10 || said.Lines.Count < 10 * HandfulOfLines; floods++)
        {
            // Whether a connection's flood is too much for the server is a matter of moments; of many it is for some.
            Assert.InRange(floods, 0, 5_000);
            await FloodClient.ResetStreamsAsync(host.Address, Echo, streams: 5_000).WaitAsync(s_patience);
        }

        await FloodClient.DescribeAsync(host.Channel);
        Assert.InRange(kept.Lines.Count, 1, HandfulOfLines);
    }

    [Theory]
    [InlineData(256, 224)]
    [InlineData(1024, 896)]
    [InlineData(1_048_576, 1_047_552)]
    public void A_part_of_the_descriptors_is_kept_back(long limit, long ceiling)
    {
        DescriptorLimit descriptors = new(limit);
        Assert.Equal(ceiling, descriptors.Ceiling);
        Assert.True(descriptors.Admits((nint)ceiling - 1));
        Assert.False(descriptors.Admits((nint)ceiling));
    }

    /// <summary>Hears what is said to a factory. Any thread.</summary>
    private sealed class Tap(ILoggerFactory inner, LogRecorder said) : ILoggerFactory
    {
        public void AddProvider(ILoggerProvider provider) => inner.AddProvider(provider);

        public ILogger CreateLogger(string categoryName) => new Tapped(inner.CreateLogger(categoryName), said);

        public void Dispose()
        {
        }
    }

    private sealed class Tapped(ILogger inner, LogRecorder said) : ILogger
    {
        public IDisposable? BeginScope<TState>(TState state)
            where TState : notnull => inner.BeginScope(state);

        public bool IsEnabled(LogLevel logLevel) => inner.IsEnabled(logLevel);

        public void Log<TState>(
            LogLevel logLevel,
            EventId eventId,
            TState state,
            Exception? exception,
            Func<TState, Exception?, string> formatter)
        {
            said.Log(logLevel, eventId, state, exception, formatter);
            inner.Log(logLevel, eventId, state, exception, formatter);
        }
    }
}
