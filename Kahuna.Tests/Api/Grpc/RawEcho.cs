using System.Buffers;
using System.Buffers.Binary;
using System.IO.Pipelines;
using Grpc.Core;
using Kahuna.Server.Api.Calls;

namespace Kahuna.Tests.Api.Grpc;

/// <summary>Sends each message of a raw stream back, prefix and all. Any thread.</summary>
internal static class RawEcho
{
    public static async Task RunAsync(RawStream stream, ServerCallContext call)
    {
        await stream.FlushHeadersAsync();
        while (true)
        {
            ReadResult result = await stream.Input.ReadAsync(call.CancellationToken);
            ReadOnlySequence<byte> rest = result.Buffer;
            while (RawStream.TryReadMessage(
                ref rest, CallLimits.MessageBytesDefault, out ReadOnlySequence<byte> message))
            {
                Span<byte> prefix = stream.Output.GetSpan(MessageFraming.PrefixBytes);
                prefix[0] = 0;
                BinaryPrimitives.WriteUInt32BigEndian(prefix[1..], (uint)message.Length);
                stream.Output.Advance(MessageFraming.PrefixBytes);
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
