using System.Buffers.Binary;
using Grpc.Core;
using Kahuna.Server.Api.Errors;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Api;

/// <summary>
/// Executes lock commands for unary callers, and provides the clock of their leases. Any thread. Continuations run in
/// the caller's context, as those of <see cref="UnaryExecutor"/> do.
/// </summary>
/// <param name="execute">Executes an encoded command within a time limit (null: none):
/// <see cref="UnaryExecutor.ExecuteAsync"/>.</param>
/// <param name="time">The clock.</param>
internal sealed class LockExecutor(
    Func<ByteBuffer, TimeSpan?, CancellationToken, Task<byte[]>> execute, TimeProvider time)
{
    /// <summary>The meta group raises the ceiling of leases within one or two commits.</summary>
    private const int CeilingWaitMs = 2000;

    private static readonly TimeSpan s_ceilingPause = TimeSpan.FromMilliseconds(20);

    /// <summary>This node's time.</summary>
    public NodeTime Now => time.Now();

    public static byte[] Encode(scoped in Command command)
    {
        ByteBuffer buffer = ByteBuffer.Rent(command.EncodedBytes);
        command.Write(buffer);
        byte[] bytes = buffer.Written.ToArray();
        buffer.Return();
        return bytes;
    }

    /// <summary>
    /// Cluster time in a reply to <see cref="CommandKind.LockAwait"/>. It had not been reached when the request was
    /// sent, and never runs faster than real time.
    /// </summary>
    public static ClusterTime TimeOf(scoped in Outcome outcome) =>
        new(BinaryPrimitives.ReadInt64LittleEndian(outcome.Value));

    /// <summary>
    /// Executes a command and returns the bytes of its outcome; see <see cref="UnaryExecutor.ExecuteAsync"/>.
    /// </summary>
    public Task<byte[]> ExecuteAsync(byte[] command, TimeSpan? timeLeft, CancellationToken ct)
    {
        ByteBuffer buffer = ByteBuffer.Rent(command.Length);
        command.CopyTo(buffer.Take(command.Length));
        return execute(buffer, timeLeft, ct);
    }

    /// <summary>
    /// Executes a command that grants a lease. Retries while an ephemeral partition waits for the meta group to raise
    /// the ceiling of leases.
    /// </summary>
    public async Task<byte[]> ExecuteLeaseAsync(byte[] command, TimeSpan? timeLeft, CancellationToken ct)
    {
        NodeTime began = Now;
        while (true)
        {
            try
            {
                return await ExecuteAsync(command, timeLeft, ct);
            }
            catch (RpcException refusal) when (
                refusal.StatusCode == StatusCode.Unavailable
                && (Durability)command[1] == Durability.Ephemeral
                && refusal.Trailers.GetValue(OutcomeErrors.OutcomeTrailer) == OutcomeErrors.DidNotHappen
                && Now - began < CeilingWaitMs
                && !ct.IsCancellationRequested)
            {
                await Task.Delay(s_ceilingPause, time, CancellationToken.None);
            }
        }
    }

    /// <summary>Waits; ends at once when the token is cancelled.</summary>
    public Task PauseAsync(TimeSpan pause, CancellationToken ct) => Task.Delay(pause, time, ct);
}
