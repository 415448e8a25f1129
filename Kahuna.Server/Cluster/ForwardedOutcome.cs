using Kahuna.Client.Outcomes;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Cluster;

/// <summary>The reply to a forwarded command, in the leader's bytes. Immutable.</summary>
internal readonly record struct ForwardedOutcome(byte[] Bytes) : IOperationResult<ForwardedOutcome>
{
    static ForwardedOutcome IOperationResult<ForwardedOutcome>.From(Answer answer)
    {
        Outcome outcome = new(answer.Status, answer.Revision.Value, answer.ReplyNumber);
        if (answer.Value is { } value)
        {
            outcome.HasValue = true;
            outcome.ValueIsNull = value.IsNull;
            outcome.Value = value.Memory.Span;
        }

        ByteBuffer buffer = ByteBuffer.Rent();
        outcome.Write(buffer);
        if (answer.Point is { } point)
        {
            Outcome.AppendPoint(buffer, 0, point);
        }

        byte[] bytes = buffer.Written.ToArray();
        buffer.Return();
        return new ForwardedOutcome(bytes);
    }
}
