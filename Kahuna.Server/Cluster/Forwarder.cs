using System.Text;
using Kahuna.Client;
using Kahuna.Client.Connection;
using Kahuna.Client.Results;
using Kahuna.Client.Wire;
using Kahuna.Client.Wire.Buffers;
using Kahuna.Client.Wire.Commands;
using Kahuna.Client.Wire.Outcomes;

namespace Kahuna.Server.Cluster;

/// <summary>
/// Forwards over the SDK's own connection: one framed stream per node, leader hints, retries of what surely did not
/// happen. Connects at the first use. Any thread.
/// </summary>
internal sealed class Forwarder : IForwarder, IAsyncDisposable
{
    private readonly Lazy<ClusterConnection> _connection;

    /// <param name="nodes">The endpoints that the cluster's nodes advertise.</param>
    /// <param name="trustedCaFile">Authority of the nodes' certificates; null: the machine's.</param>
    /// <param name="pass">Shows the other nodes what these calls are.</param>
    /// <param name="loggers">Receives connection events.</param>
    public Forwarder(IEnumerable<Uri> nodes, string? trustedCaFile, NodePass pass, ILoggerFactory loggers)
        : this(nodes, trustedCaFile, options => ConnectionPorts.ForNetwork(options) with { Channel = new GrpcFrameChannel(options) { Header = HeaderOf(pass) } }, loggers)
    {
    }

    /// <param name="nodes">The endpoints that the cluster's nodes advertise.</param>
    /// <param name="trustedCaFile">Authority of the nodes' certificates; null: the machine's.</param>
    /// <param name="ports">What the connection meets the world through; called at the first use.</param>
    /// <param name="loggers">Receives connection events.</param>
    public Forwarder(IEnumerable<Uri> nodes, string? trustedCaFile, Func<KahunaClientOptions, ConnectionPorts> ports, ILoggerFactory loggers)
    {
        // Half of them may be answers that a leader holds back; the rest still gets through.
        KahunaClientOptions options = new() { TrustedCaFile = trustedCaFile, MaxInFlight = Limits.InFlightPerStreamMax };
        foreach (Uri node in nodes)
        {
            options.Endpoints.Add(node);
        }

        _connection = new Lazy<ClusterConnection>(() =>
            new ClusterConnection(ConnectionSettings.From(options) with { AsksToForward = false }, ports(options), loggers.CreateLogger("Kahuna.Forwarder")));
    }

    public async Task<byte[]> ForwardAsync(ReadOnlyMemory<byte> command, bool mayHaveHappened, TimeSpan timeLeft, CancellationToken cancellationToken)
    {
        try
        {
            Operation<ForwardedOutcome> operation = ToOperation(command, mayHaveHappened);
            operation.Patience = timeLeft;
            ForwardedOutcome outcome = await _connection.Value.Run(operation, cancellationToken);
            return outcome.Bytes;
        }
        catch (KahunaException error)
        {
            ByteBuffer buffer = ByteBuffer.Rent();
            Outcome.WriteError(buffer, Status(error), error.Message);
            byte[] bytes = buffer.Written.ToArray();
            buffer.Return();
            return bytes;
        }
    }

    public ValueTask DisposeAsync() => _connection.IsValueCreated ? _connection.Value.DisposeAsync() : ValueTask.CompletedTask;

    private static (string Name, string Value)? HeaderOf(NodePass pass) => pass.Text is { } text ? (NodePass.Header, text) : null;

    private static Operation<ForwardedOutcome> ToOperation(ReadOnlyMemory<byte> bytes, bool mayHaveHappened)
    {
        Command.TryRead(bytes.Span, out Command command);
        Operation<ForwardedOutcome> operation = Operation<ForwardedOutcome>.Rent();
        operation.Begin(command.Kind, command.Durability, Encoding.UTF8.GetString(command.Key));
        operation.AddFlag(command.Flags, true);
        int comparedAt = bytes.Length - command.FenceName.Length - command.ComparedValue.Length;
        operation.SetValue(bytes.Slice(comparedAt - command.Value.Length, command.Value.Length));
        if (command.Has(CommandFlags.IfValue))
        {
            operation.AddComparison(command.Has(CommandFlags.NullCompared) ? KahunaValue.Null : new KahunaValue(bytes.Slice(comparedAt, command.ComparedValue.Length)), null);
        }

        if (command.Has(CommandFlags.IfRevision))
        {
            operation.AddComparison(null, command.ComparedRevision);
        }

        if (command.Has(CommandFlags.Ttl))
        {
            operation.AddTtl(TimeSpan.FromMilliseconds(command.TtlMs));
        }

        if (command.Has(CommandFlags.AtRevision))
        {
            operation.AddReadRevision(command.AtRevision);
        }

        if (command.Has(CommandFlags.Number))
        {
            operation.AddNumber(command.Number);
            operation.FixedPartition = command.Kind is CommandKind.SequenceList or CommandKind.LockList ? (int)command.Number : null;
        }

        if (command.Has(CommandFlags.Fenced))
        {
            operation.AddFence(Encoding.UTF8.GetString(command.FenceName), command.FenceToken);
        }

        if (command.Has(CommandFlags.Session))
        {
            operation.SetNumber(command.SessionId, command.Sequence, command.Lag, mayHaveHappened);
            operation.GivenEpoch = command.Epoch;
        }

        return operation;
    }

    private static OutcomeStatus Status(KahunaException error) => error.Code switch
    {
        KahunaErrorCode.OutcomeUnknown => OutcomeStatus.NumberForgotten,
        KahunaErrorCode.InvalidArgument => OutcomeStatus.InvalidArgument,
        KahunaErrorCode.Unimplemented => OutcomeStatus.Unimplemented,
        KahunaErrorCode.Overloaded => OutcomeStatus.Busy,
        KahunaErrorCode.LogFull when error.Outcome == OperationOutcome.DidNotHappen => OutcomeStatus.LogFull,
        KahunaErrorCode.MemoryFull when error.Outcome == OperationOutcome.DidNotHappen => OutcomeStatus.MemoryFull,
        KahunaErrorCode.SessionsFull when error.Outcome == OperationOutcome.DidNotHappen => OutcomeStatus.SessionsFull,
        KahunaErrorCode.LockFull when error.Outcome == OperationOutcome.DidNotHappen => OutcomeStatus.LockFull,
        KahunaErrorCode.Internal => OutcomeStatus.Internal,
        _ when error.Outcome != OperationOutcome.DidNotHappen => OutcomeStatus.Unknown,
        KahunaErrorCode.DeadlineExceeded => OutcomeStatus.Expired,
        _ => OutcomeStatus.Unavailable,
    };
}
