using Kahuna.Client.Wire.Grpc;
using Kahuna.Server.Api.Grpc;
using Kahuna.Tests.Api.Grpc.Protos;

namespace Kahuna.Tests.Api.Grpc;

/// <summary>The streams of kahuna/test/streams.proto, which hold no state. Any thread.</summary>
internal static class EchoHandlers
{
    private const uint DelayMsMax = 60_000;

    /// <summary>Answers each message with the same bytes, in order, after the delay that it asks for.</summary>
    public static async Task EchoAsync(GrpcStreamReader<EchoMessage> requests, GrpcStreamWriter<EchoMessage> replies, CallContext call)
    {
        while (await requests.ReadAsync() is { } message)
        {
            if (message.DelayMs > DelayMsMax)
            {
                throw new GrpcException(GrpcStatusCode.InvalidArgument, $"delay_ms is {message.DelayMs}; at most {DelayMsMax} is allowed.");
            }

            if (message.DelayMs > 0)
            {
                await Task.Delay(TimeSpan.FromMilliseconds(message.DelayMs), call.CancellationToken);
            }

            await replies.WriteAsync(message);
        }
    }

    /// <summary>Counts what the caller sends until its end.</summary>
    public static async Task<SinkResponse> SinkAsync(GrpcStreamReader<EchoMessage> requests, CallContext call)
    {
        SinkResponse total = new();
        while (await requests.ReadAsync() is { } message)
        {
            total.Messages++;
            total.Bytes += (ulong)message.Payload.Length;
        }

        return total;
    }
}
