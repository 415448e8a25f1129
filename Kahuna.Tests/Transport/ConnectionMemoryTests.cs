using System.Buffers;
using System.Net;
using Kahuna.Server.Transport;
using Kahuna.Tests.Api.Grpc;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Http.Features;

namespace Kahuna.Tests.Transport;

/// <summary>
/// A reply that is being written when its stream ends is written to its end: the writer is never given an empty buffer.
/// </summary>
public sealed class ConnectionMemoryTests
{
    [Theory]
    [InlineData(0, 4096)]
    [InlineData(-1, 4096)]
    [InlineData(1, 1)]
    [InlineData(100_000, 100_000)]
    public void A_buffer_is_never_empty(int wanted, int atLeast)
    {
        using IMemoryOwner<byte> buffer = ConnectionMemory.Instance.Rent(wanted);
        Assert.InRange(buffer.Memory.Length, atLeast, int.MaxValue);
    }

    [Fact]
    public async Task The_writer_of_an_aborted_stream_gets_buffers()
    {
        TaskCompletionSource<int> size = new(TaskCreationOptions.RunContinuationsAsynchronously);
        await using GrpcTestHost host = await GrpcTestHost.StartAsync(map: app => app.MapGet("/half", http =>
        {
            // As the writer of messages does: some bytes, then buffers of any size.
            http.Response.BodyWriter.GetSpan(5).Clear();
            http.Response.BodyWriter.Advance(5);
            http.Features.GetRequiredFeature<IHttpResetFeature>().Reset(8);
            size.SetResult(http.Response.BodyWriter.GetSpan().Length);
            return Task.CompletedTask;
        }));
        using HttpMessageInvoker client = RawHttp.Invoker();
        using HttpRequestMessage request = new(HttpMethod.Get, new Uri(host.Address, "/half"))
        {
            Version = HttpVersion.Version20,
            VersionPolicy = HttpVersionPolicy.RequestVersionExact,
        };
        await Assert.ThrowsAnyAsync<HttpRequestException>(() => client.SendAsync(request, CancellationToken.None));
        Assert.InRange(await size.Task.WaitAsync(LastNet.Span), 1, int.MaxValue);
    }
}
