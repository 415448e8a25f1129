using Grpc.Core;
using Kahuna.Tests.Api.Grpc.Protos;

namespace Kahuna.Tests.Api.Grpc;

/// <summary>The streams of kahuna/test/streams.proto, which hold no state. Any thread.</summary>
internal static class EchoHandlers
{
    private const uint DelayMsMax = 60_000;

    /// <summary>Answers each message with the same bytes, in order, after the delay that it asks for.</summary>
    public static async Task EchoAsync(
        IAsyncStreamReader<EchoMessage> requests, IServerStreamWriter<EchoMessage> replies, ServerCallContext call)
    {
        await foreach (EchoMessage message in requests.ReadAllAsync())
        {
            if (message.DelayMs > DelayMsMax)
            {
                throw new RpcException(new Status(
                    StatusCode.InvalidArgument, $"delay_ms is {message.DelayMs}; at most {DelayMsMax} is allowed."));
            }

            if (message.DelayMs > 0)
            {
                await Task.Delay(TimeSpan.FromMilliseconds(message.DelayMs), call.CancellationToken);
            }

            await replies.WriteAsync(message);
        }
    }

    /// <summary>Counts what the caller sends until its end.</summary>
    public static async Task<SinkResponse> SinkAsync(IAsyncStreamReader<EchoMessage> requests, ServerCallContext call)
    {
        SinkResponse total = new();
        await foreach (EchoMessage message in requests.ReadAllAsync())
        {
            total.Messages++;
            total.Bytes += (ulong)message.Payload.Length;
        }

        return total;
    }
}
