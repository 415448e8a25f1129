using Kahuna.Client.Connection;
using Kahuna.Client.Results;
using Kahuna.Client.Wire.Buffers;
using Kahuna.Client.Wire.Outcomes;

namespace Kahuna.Server.Cluster;

/// <summary>The answer to a forwarded command, in the bytes that the leader sent. Immutable.</summary>
internal readonly record struct ForwardedOutcome(byte[] Bytes) : IOperationResult<ForwardedOutcome>
{
    static ForwardedOutcome IOperationResult<ForwardedOutcome>.From(Operation answered)
    {
        Outcome outcome = new(answered.ReplyStatus, answered.ReplyRevision, answered.ReplyNumber);
        if (answered.ReplyValue is { } value)
        {
            outcome.HasValue = true;
            outcome.ValueIsNull = value.IsNull;
            outcome.Value = value.Memory.Span;
        }

        ByteBuffer buffer = ByteBuffer.Rent();
        outcome.Write(buffer);
        byte[] bytes = buffer.Written.ToArray();
        buffer.Return();
        return new ForwardedOutcome(bytes);
    }
}
