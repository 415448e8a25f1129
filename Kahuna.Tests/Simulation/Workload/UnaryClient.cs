using System.Text;
using Kahuna.Client.Wire.Buffers;
using Kahuna.Client.Wire.Commands;
using Kahuna.Client.Wire.Grpc;
using Kahuna.Client.Wire.Outcomes;
using Kahuna.Tests.Simulation.Engine;
using Kahuna.Tests.Simulation.Network;

namespace Kahuna.Tests.Simulation.Workload;

/// <summary>Calls as a client in any language makes them: one request to one node, a deadline, no retries. Owned by one client.</summary>
internal sealed class UnaryClient(ClientNetwork network, int number, SimClock clock, TimeSpan timeout)
{
    /// <summary>How much longer the client waits than it tells the node, so that what the node says at the deadline is heard.</summary>
    private static readonly TimeSpan s_grace = TimeSpan.FromMilliseconds(300);

    /// <summary>Makes a call and fills in what came back.</summary>
    public async Task RunAsync(Call call, int node, CancellationToken ct)
    {
        TaskCompletionSource<UnaryAnswer> answered = new(TaskCreationOptions.RunContinuationsAsynchronously);
        using CancellationTokenSource limit = new(timeout + s_grace, clock);
        using CancellationTokenRegistration late = limit.Token.UnsafeRegister(_ => answered.TrySetResult(UnaryAnswer.Late), null);
        using CancellationTokenRegistration abandoned = ct.UnsafeRegister(_ => answered.TrySetResult(UnaryAnswer.Lost), null);
        network.Call(number, node, Encode(call), timeout, answer => answered.TrySetResult(answer));
        UnaryAnswer answer = await answered.Task;
        if (answer.Error is { } error)
        {
            if (error.Code == GrpcStatusCode.InvalidArgument)
            {
                throw error;
            }

            call.Error = error.Code.ToString();
            call.Outcome = answer.DidNotHappen ? CallOutcome.Fail : CallOutcome.Unknown;
            return;
        }

        Fill(call, answer.Outcome);
        call.Outcome = CallOutcome.Ok;
    }

    private static void Fill(Call call, ReadOnlySpan<byte> bytes)
    {
        if (!Outcome.TryRead(bytes, out Outcome outcome))
        {
            throw new InvalidOperationException("A unary answer cannot be read.");
        }

        call.Done = outcome.Status is OutcomeStatus.Applied or OutcomeStatus.Found;
        call.Revision = outcome.Status == OutcomeStatus.NotFound && call.Kind is (CallKind.Delete or CallKind.Extend) ? null : outcome.Revision;
        if (call.Kind == CallKind.Get && call.Done)
        {
            call.FoundValue = Encoding.UTF8.GetString(outcome.Value);
        }
        else if (call.Kind == CallKind.Increment)
        {
            call.Number = outcome.Number;
        }
    }

    private static byte[] Encode(Call call)
    {
        Command command = new()
        {
            Kind = Enum.Parse<CommandKind>(call.Kind.ToString()),
            Durability = call.IsEphemeral ? CommandDurability.Ephemeral : CommandDurability.Persistent,
            Key = Encoding.UTF8.GetBytes(call.Key),
            Value = call.Value is null ? default : Encoding.UTF8.GetBytes(call.Value),
            ComparedValue = call.OnlyIfValue is null ? default : Encoding.UTF8.GetBytes(call.OnlyIfValue),
            ComparedRevision = call.OnlyIfRevision ?? 0,
            TtlMs = call.TtlMs ?? 0,
            Number = call.By,
            Flags = (call.OnlyIfAbsent ? CommandFlags.IfAbsent : 0)
                | (call.OnlyIfPresent ? CommandFlags.IfPresent : 0)
                | (call.OnlyIfValue is null ? 0 : CommandFlags.IfValue)
                | (call.OnlyIfRevision is null ? 0 : CommandFlags.IfRevision)
                | (call.TtlMs is null ? 0 : CommandFlags.Ttl)
                | (call.Kind == CallKind.Increment ? CommandFlags.Number : 0),
        };
        ByteBuffer buffer = ByteBuffer.Rent(command.EncodedBytes);
        command.Write(buffer);
        byte[] bytes = buffer.Written.ToArray();
        buffer.Return();
        return bytes;
    }
}
