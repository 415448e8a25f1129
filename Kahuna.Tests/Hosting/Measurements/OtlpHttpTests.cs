using System.Diagnostics;
using System.Net;
using System.Net.Sockets;
using Kahuna.Server.Api;
using Kahuna.Server.Cluster;
using Kahuna.Server.Hosting.Measurements;
using Kahuna.Server.Primitives;
using Kahuna.Tests.Client;
using OpenTelemetry.Exporter;

namespace Kahuna.Tests.Hosting.Measurements;

/// <summary>
/// Metrics and traces go to a receiver over HTTP. One that refuses, hangs or is not trusted is reported once a minute,
/// and gets the next figures when it is back. Reports of other tests of the process count as well.
/// </summary>
public sealed class OtlpHttpTests : IDisposable
{
    private static readonly ClusterIdentity s_identity = new("test", new NodeId(1), "1.0", 1, []);

    private readonly NodeMeter _meter = new();
    private readonly ManualTime _time = new();
    private readonly Lock _lock = new();
    private readonly List<string> _reasons = [];

    public OtlpHttpTests() => _meter.Gauge(new MetricName("kahuna.test", "A number."), static () => 1L);

    public void Dispose() => _meter.Dispose();

    [Theory]
    [InlineData("", "")]
    [InlineData("/", "")]
    [InlineData("/otlp", "/otlp")]
    [InlineData("/otlp/", "/otlp")]
    public async Task Each_signal_has_its_path_below_the_address(string given, string expected)
    {
        await using OtlpHttpReceiver receiver = await OtlpHttpReceiver.StartAsync();
        OtlpTarget target = Target(new Uri(receiver.Address.GetLeftPart(UriPartial.Authority) + given));
        await using (OtlpExport.Start(_meter, s_identity, target, Tell))
        {
        }

        using ActivitySource source = new(ServerTraces.Name);
        await using (OtlpTraces.Start(source, s_identity, target))
        {
            using Activity? activity = source.StartActivity("traced");
            Assert.NotNull(activity);
        }

        OtlpHttpReceiver.Request metrics = Assert.Single(receiver.Requests, request =>
            request.Line == $"POST {expected}/v1/metrics");
        OtlpHttpReceiver.Request traces = Assert.Single(receiver.Requests, request =>
            request.Line == $"POST {expected}/v1/traces");
        Assert.Equal(2, receiver.Requests.Length);
        Assert.Contains("kahuna.test", metrics.Body, StringComparison.Ordinal);
        Assert.Contains("traced", traces.Body, StringComparison.Ordinal);
        Assert.All(receiver.Requests, static request =>
            Assert.Equal(("application/x-protobuf", "secret"), (request.Format, request.Key)));
    }

    [Theory]
    [InlineData(400)]
    [InlineData(401)]
    [InlineData(429)]
    [InlineData(500)]
    [InlineData(503)]
    public async Task A_refusal_is_told_once_a_minute_and_sending_goes_on(int status)
    {
        await using OtlpHttpReceiver receiver = await OtlpHttpReceiver.StartAsync();
        receiver.Answer = http =>
        {
            http.Response.StatusCode = status;
            http.Response.Headers.RetryAfter = "1";
            return Task.CompletedTask;
        };
        await using OtlpExport export = OtlpExport.Start(_meter, s_identity, Target(receiver.Address), Tell);
        await SendAsync(receiver, 5);
        Assert.DoesNotContain('\n', Assert.Single(Reasons));
        _time.Jump(TimeSpan.FromSeconds(59));
        await SendAsync(receiver, 5);
        Assert.Single(Reasons);
        _time.Jump(TimeSpan.FromSeconds(1));
        await Wait.UntilAsync(() => Task.FromResult(Reasons.Length == 2), LastNet.Minute);
        await SendAsync(receiver, 5);
        Assert.Equal(2, Reasons.Length);
    }

    [Fact]
    public async Task A_receiver_that_hangs_is_given_up_and_gets_the_next_figures_when_it_is_back()
    {
        await using OtlpHttpReceiver receiver = await OtlpHttpReceiver.StartAsync();
        receiver.Answer = static http => Task.Delay(Timeout.Infinite, http.RequestAborted);
        await using OtlpExport export = OtlpExport.Start(_meter, s_identity, Target(receiver.Address), Tell);
        await SendAsync(receiver, 3);
        Assert.Single(Reasons);
        int answered = 0;
        receiver.Answer = _ =>
        {
            Interlocked.Increment(ref answered);
            return Task.CompletedTask;
        };
        await Wait.UntilAsync(() => Task.FromResult(Volatile.Read(ref answered) >= 3), LastNet.Minute);
        Assert.Single(Reasons);
    }

    [Fact]
    public async Task A_receiver_that_accepts_no_connection_is_told_and_does_not_hold_up_the_end()
    {
        using TcpListener deaf = new(IPAddress.Loopback, 0);
        deaf.Start();
        await using (OtlpExport.Start(_meter, s_identity, Target(new Uri($"http://{deaf.LocalEndpoint}")), Tell))
        {
            await ToldAsync($":{((IPEndPoint)deaf.LocalEndpoint).Port}");
        }
    }

    [Fact]
    public async Task A_receiver_whose_certificate_is_not_trusted_gets_nothing()
    {
        await using OtlpHttpReceiver receiver = await OtlpHttpReceiver.StartAsync(isTls: true);
        await using (OtlpExport.Start(_meter, s_identity, Target(receiver.Address), Tell))
        {
            await ToldAsync($":{receiver.Address.Port}");
        }

        Assert.Empty(receiver.Requests);
    }

    private string[] Reasons
    {
        get
        {
            lock (_lock)
            {
                return [.. _reasons];
            }
        }
    }

    private void Tell(string reason)
    {
        lock (_lock)
        {
            _reasons.Add(reason);
        }
    }

    private OtlpTarget Target(Uri address) => new(address)
    {
        Adjust = static options =>
        {
            options.Protocol = OtlpExportProtocol.HttpProtobuf;
            options.Headers = "api-key=secret";
            options.TimeoutMilliseconds = 1_000;
        },
        PauseMs = 20,
        Time = _time,
    };

    /// <summary>Waits until the metrics were sent so often again.</summary>
    private static Task SendAsync(OtlpHttpReceiver receiver, int times)
    {
        int before = receiver.Requests.Length;
        return Wait.UntilAsync(() => Task.FromResult(receiver.Requests.Length >= before + times), LastNet.Minute);
    }

    /// <summary>Waits for a report of this receiver; those of other tests may come before.</summary>
    private Task ToldAsync(string part) => Wait.UntilAsync(
        async () =>
        {
            await Task.Delay(10);
            _time.Jump(TimeSpan.FromMinutes(1));
            return Reasons.Any(reason => reason.Contains(part, StringComparison.Ordinal));
        },
        LastNet.Minute);
}
