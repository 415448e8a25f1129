using System.Buffers;
using System.IO.Pipelines;
using Kahuna.Client.Wire.Grpc;
using Kahuna.Server.Api.Grpc;

namespace Kahuna.Tests.Api.Grpc;

/// <summary>Sends each message of a raw stream back, prefix and all. Any thread.</summary>
internal static class RawEcho
{
    public static async Task RunAsync(RawGrpcStream stream, CallContext call)
    {
        await stream.FlushHeadersAsync();
        while (true)
        {
            ReadResult result = await stream.Input.ReadAsync(call.CancellationToken);
            ReadOnlySequence<byte> rest = result.Buffer;
            while (RawGrpcStream.TryReadMessage(ref rest, GrpcProtocol.MaxReceiveBytesDefault, out ReadOnlySequence<byte> message))
            {
                GrpcFraming.WritePrefix(stream.Output.GetSpan(GrpcProtocol.PrefixBytes), compressed: false, (int)message.Length);
                stream.Output.Advance(GrpcProtocol.PrefixBytes);
                foreach (ReadOnlyMemory<byte> part in message)
                {
                    stream.Output.Write(part.Span);
                }
            }

            stream.Input.AdvanceTo(rest.Start, rest.End);
            await stream.Output.FlushAsync(call.CancellationToken);
            if (result.IsCompleted)
            {
                return;
            }
        }
    }
}
