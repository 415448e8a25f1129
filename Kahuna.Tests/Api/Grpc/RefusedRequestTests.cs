using System.Net;
using Google.Protobuf;
using Grpc.Core;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Api.Protos;
using Kahuna.Tests.Api.Grpc.Protos;
using Kahuna.Tests.Transport;

namespace Kahuna.Tests.Api.Grpc;

/// <summary>Requests that no gRPC client sends: each gets the answer that the protocol names, and none hangs.</summary>
public sealed class RefusedRequestTests
{
    private const string Get = "/kahuna.v1.KeyValues/GetKeyValue";
    private const string Sink = "/kahuna.test.Streams/Sink";

    private static readonly TimeSpan s_patience = LastNet.Span;

    [Fact]
    public async Task Another_content_type_is_415()
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync();
        using HttpResponseMessage response = await SendAsync(
            RawHttp.Request(host.Address, Get, [0, 0, 0, 0, 0], "application/json"));
        Assert.Equal(HttpStatusCode.UnsupportedMediaType, response.StatusCode);
        Assert.Equal("13", await RawHttp.StatusAsync(response));
    }

    [Theory]
    [InlineData("key", new byte[] { 0x0A, 2, 0xC3, 0x28 })]
    [InlineData("key", new byte[] { 0x0A, 1, (byte)'a', 0x0A, 1, 0xFF })]
    [InlineData("key", new byte[] { 0x7B, 0x7C, 0x0A, 1, 0xFF })]
    [InlineData("key", new byte[] { 0x8A, 0x80, 0x80, 0x80, 0x10, 1, 0xFF })]
    [InlineData("key", new byte[] { 0x0A, 0x81, 0x80, 0x80, 0x80, 0x10, 0xFF })]
    public async Task Text_that_is_no_utf_8_is_refused_by_its_field(string field, byte[] message)
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync();
        using HttpResponseMessage response = await SendAsync(
            RawHttp.Request(host.Address, Get, [0, 0, 0, 0, (byte)message.Length, .. message]));
        Assert.Equal("3", await RawHttp.StatusAsync(response));
        Assert.Equal($"{field} is not valid UTF-8; nothing was done.", Header(response, "grpc-message"));
        Assert.Equal("did-not-happen", Header(response, "kahuna-outcome"));
    }

    [Theory]
    [InlineData(false, "did-not-happen")]
    [InlineData(true, "unknown")]
    public async Task Errors_tell_the_outcome_by_whether_the_work_had_begun(bool begun, string outcome)
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync(
            server => server.AddService(KeyValuesReflection.Descriptor.Services[0], service => service
                .Unary<GetKeyValueRequest, GetKeyValueResponse>(
                    "GetKeyValue", static (_, _) => throw new InvalidOperationException("planted"))));
        byte[] body = begun ? [0, 0, 0, 0, 0] : [0, 0, 0, 0, 9, 1];
        using HttpResponseMessage response = await SendAsync(RawHttp.Request(host.Address, Get, body));
        Assert.Equal(outcome, Header(response, "kahuna-outcome"));
    }

    [Fact]
    public async Task A_deadline_that_ends_a_call_tells_the_outcome()
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync(
            server => server.AddService(KeyValuesReflection.Descriptor.Services[0], service => service
                .Unary<GetKeyValueRequest, GetKeyValueResponse>("GetKeyValue", static async (_, call) =>
                {
                    await Task.Delay(Timeout.Infinite, call.CancellationToken);
                    return new GetKeyValueResponse();
                })));
        using HttpRequestMessage request = RawHttp.Request(host.Address, Get, [0, 0, 0, 0, 0]);
        request.Headers.Add("grpc-timeout", "100m");
        using HttpResponseMessage response = await SendAsync(request);
        Assert.Equal("4", await RawHttp.StatusAsync(response));
        Assert.Equal("unknown", Header(response, "kahuna-outcome"));
    }

    [Fact]
    public async Task Another_method_is_405()
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync();
        using HttpRequestMessage request = RawHttp.Request(host.Address, Get, []);
        request.Method = HttpMethod.Put;
        using HttpResponseMessage response = await SendAsync(request);
        Assert.Equal(HttpStatusCode.MethodNotAllowed, response.StatusCode);
        Assert.Equal("POST", response.Content.Headers.Allow.Single());
    }

    [Fact]
    public async Task Http_1_1_is_426()
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync();
        using HttpRequestMessage request = RawHttp.Request(host.Address, Get, [0, 0, 0, 0, 0]);
        request.Version = HttpVersion.Version11;
        request.Headers.Remove("te");
        using HttpResponseMessage response = await SendAsync(request);
        Assert.Equal(HttpStatusCode.UpgradeRequired, response.StatusCode);
    }

    [Fact]
    public async Task What_is_not_grpc_goes_on()
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync();
        using HttpResponseMessage response = await SendAsync(
            RawHttp.Request(host.Address, "/healthz", [], "text/plain"));
        Assert.Equal("not grpc", await response.Content.ReadAsStringAsync());
    }

    [Theory]
    [InlineData("a message cut off", new byte[] { 0, 0, 0, 0, 9, 1, 2 })]
    [InlineData("a prefix cut off", new byte[] { 0, 0, 0 })]
    [InlineData("no message", new byte[0])]
    [InlineData("no protobuf", new byte[] { 0, 0, 0, 0, 4, 255, 255, 255, 255 })]
    [InlineData("a flag that is none", new byte[] { 9, 0, 0, 0, 0 })]
    [InlineData("text", new byte[] { 123, 34, 107, 101, 121, 34, 58, 34, 97, 34, 125 })]
    [InlineData("compressed without an encoding", new byte[] { 1, 0, 0, 0, 1, 7 })]
    [InlineData("two messages", new byte[] { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 })]
    public async Task A_body_that_is_not_one_message_is_internal(string what, byte[] body)
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync();
        using HttpResponseMessage response = await SendAsync(RawHttp.Request(host.Address, Get, body));
        Assert.Equal(HttpStatusCode.OK, response.StatusCode);
        string? status = await RawHttp.StatusAsync(response);
        Assert.True(status == "13", $"{what}: status {status}");
    }

    [Fact]
    public async Task A_stream_cut_off_in_a_message_is_internal()
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync();
        using HttpResponseMessage response = await SendAsync(
            RawHttp.Request(host.Address, Sink, [0, 0, 0, 0, 0, 0, 0, 0, 0, 50, 1]));
        Assert.Equal("13", await RawHttp.StatusAsync(response));
    }

    [Fact]
    public async Task A_length_over_the_limit_is_resource_exhausted_before_the_body_arrives()
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync();
        using HttpResponseMessage response = await SendAsync(
            RawHttp.Request(host.Address, Get, [0, 127, 255, 255, 255, 1]));
        Assert.Equal("8", await RawHttp.StatusAsync(response));
    }

    [Fact]
    public async Task An_unknown_encoding_is_unimplemented_and_told_what_is_known()
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync();
        using HttpRequestMessage request = RawHttp.Request(host.Address, Get, [1, 0, 0, 0, 1, 7]);
        request.Headers.Add("grpc-encoding", "snappy");
        using HttpResponseMessage response = await SendAsync(request);
        Assert.Equal("12", await RawHttp.StatusAsync(response));
        Assert.Equal("identity,gzip", response.Headers.GetValues("grpc-accept-encoding").Single());
    }

    [Theory]
    [InlineData("soon", "13")]
    [InlineData("0S", "4")]
    public async Task A_timeout_that_is_none_or_over_is_answered_at_once(string timeout, string status)
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync();
        using HttpRequestMessage request = RawHttp.Request(host.Address, Get, [0, 0, 0, 0, 0]);
        request.Headers.Add("grpc-timeout", timeout);
        using HttpResponseMessage response = await SendAsync(request);
        Assert.Equal(status, await RawHttp.StatusAsync(response));
    }

    [Fact]
    public async Task A_whole_message_is_answered_before_its_caller_says_that_nothing_follows()
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync();
        GetKeyValueRequest message = new() { Key = "a", Durability = Server.Api.Protos.Durability.Persistent };
        using HttpRequestMessage request = RawHttp.Request(host.Address, Get, []);
        request.Content = new EndlessContent([0, 0, 0, 0, (byte)message.CalculateSize(), .. message.ToByteArray()]);
        request.Content.Headers.ContentType = new("application/grpc");
        using HttpResponseMessage response = await SendAsync(request);
        Assert.Equal("0", await RawHttp.StatusAsync(response).WaitAsync(s_patience));
    }

    [Fact]
    public async Task Half_a_message_ends_its_call_and_never_its_connection()
    {
        // The web server closes connections whose bodies are slow, after five seconds, if it is let.
        await using GrpcTestHost host = await GrpcTestHost.StartAsync(
            options: new CallLimits { RequestTimeout = TimeSpan.FromSeconds(8) });
        using HttpMessageInvoker connection = RawHttp.Invoker();
        using RawCall stream = await RawCall.OpenAsync(connection, host.Address, "/kahuna.v1.Cluster/Exchange");
        await stream.WriteAsync(new byte[] { 0, 0, 0, 0, 1, 7 });
        using HttpRequestMessage half = RawHttp.Request(host.Address, Get, []);
        half.Content = new EndlessContent([0, 0, 0, 0, 9, 1]);
        half.Content.Headers.ContentType = new("application/grpc");
        using HttpResponseMessage ended = await connection.SendAsync(half, CancellationToken.None)
            .WaitAsync(s_patience);
        Assert.Equal("4", await RawHttp.StatusAsync(ended));
        Assert.Equal("did-not-happen", Header(ended, "kahuna-outcome"));
        stream.CompleteRequests();
        Assert.Equal(RawCall.OK, (await stream.StatusAsync()).Code);
    }

    [Theory]
    [InlineData(new byte[] { 0, 0, 0, 0, 4, 255, 255, 255, 255 })]
    [InlineData(new byte[] { 0, 0, 0, 0, 9, 1, 2 })]
    [InlineData(new byte[] { 9, 0, 0, 0, 0 })]
    public async Task What_cannot_be_read_is_one_line_in_the_log(byte[] body)
    {
        LogRecorder log = new();
        await using GrpcTestHost host = await GrpcTestHost.StartAsync(log: log);
        using HttpResponseMessage response = await SendAsync(RawHttp.Request(host.Address, Get, body));
        Assert.Equal("13", await RawHttp.StatusAsync(response));
        await log.WaitFor("could not be read");
        Assert.DoesNotContain("   at ", Assert.Single(log.Lines), StringComparison.Ordinal);
    }

    [Fact]
    public async Task A_request_that_never_ends_is_given_up()
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync(
            options: new CallLimits { RequestTimeout = TimeSpan.FromMilliseconds(200) });
        using AsyncDuplexStreamingCall<EchoMessage, GetKeyValueResponse> stuck =
            host.Channel.DuplexStreaming<EchoMessage, GetKeyValueResponse>(Get, GetKeyValueResponse.Parser);
        RpcException failure = await Assert.ThrowsAsync<RpcException>(() => stuck.ReadAsync()).WaitAsync(s_patience);
        Assert.Equal(StatusCode.DeadlineExceeded, failure.StatusCode);
    }

    private static string? Header(HttpResponseMessage response, string name) =>
        response.Headers.TryGetValues(name, out IEnumerable<string>? early) ? early.Single()
        : response.TrailingHeaders.TryGetValues(name, out IEnumerable<string>? late) ? late.Single()
        : null;

    private static async Task<HttpResponseMessage> SendAsync(HttpRequestMessage request) =>
        await RawHttp.Invoker().SendAsync(request, CancellationToken.None).WaitAsync(s_patience);
}
