using System.Buffers.Binary;
using Grpc.Core;
using Kahuna.Client.Wire.Buffers;
using Kahuna.Client.Wire.Commands;
using Kahuna.Client.Wire.Outcomes;

namespace Kahuna.Server.Api;

/// <summary>Carries out commands about locks for unary callers, and tells the time by which their leases are reckoned. Any thread. Goes on where its caller runs, as <see cref="UnaryCalls"/> does.</summary>
/// <param name="execute">Carries out an encoded command, within a time limit (null: none), while somebody waits: <see cref="UnaryCalls.ExecuteAsync"/>.</param>
/// <param name="time">The clock.</param>
internal sealed class LockCalls(Func<ByteBuffer, TimeSpan?, CancellationToken, Task<byte[]>> execute, TimeProvider time)
{
    /// <summary>The meta group makes room for longer leases within one or two commits.</summary>
    private const int RoomMs = 2000;

    private static readonly TimeSpan s_roomPause = TimeSpan.FromMilliseconds(20);

    /// <summary>This node's monotonic time, rounded down.</summary>
    public long NowMs => (long)(time.GetTimestamp() * 1000.0 / time.TimestampFrequency);

    public static byte[] Encode(scoped in Command command)
    {
        ByteBuffer buffer = ByteBuffer.Rent(command.EncodedBytes);
        command.Write(buffer);
        byte[] bytes = buffer.Written.ToArray();
        buffer.Return();
        return bytes;
    }

    /// <summary>Cluster time, as the answer to <see cref="CommandKind.LockAwait"/> tells it: it was not reached when the request was sent, and never runs faster than time.</summary>
    public static long ClusterMs(scoped in Outcome outcome) => BinaryPrimitives.ReadInt64LittleEndian(outcome.Value);

    /// <summary>The outcome's bytes of a normal answer; see <see cref="UnaryCalls.ExecuteAsync"/>.</summary>
    public Task<byte[]> ExecuteAsync(byte[] command, TimeSpan? timeLeft, CancellationToken ct)
    {
        ByteBuffer buffer = ByteBuffer.Rent(command.Length);
        command.CopyTo(buffer.Take(command.Length));
        return execute(buffer, timeLeft, ct);
    }

    /// <summary>As <see cref="ExecuteAsync"/>, for commands that ask for a lease: an ephemeral partition may have to make room for a long one, and says so meanwhile.</summary>
    public async Task<byte[]> LeaseAsync(byte[] command, TimeSpan? timeLeft, CancellationToken ct)
    {
        long beganMs = NowMs;
        while (true)
        {
            try
            {
                return await ExecuteAsync(command, timeLeft, ct);
            }
            catch (RpcException refusal) when (
                refusal.StatusCode == StatusCode.Unavailable
                && (CommandDurability)command[1] == CommandDurability.Ephemeral
                && refusal.Trailers.GetValue(OutcomeErrors.OutcomeTrailer) == OutcomeErrors.DidNotHappen
                && NowMs - beganMs < RoomMs
                && !ct.IsCancellationRequested)
            {
                await Task.Delay(s_roomPause, time, CancellationToken.None);
            }
        }
    }

    /// <summary>Ends at once when the token does.</summary>
    public Task PauseAsync(TimeSpan pause, CancellationToken ct) => Task.Delay(pause, time, ct);
}
