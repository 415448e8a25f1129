using System.Text;
using Kahuna.Client;
using Kahuna.Client.Connection;
using Kahuna.Client.Coordination;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Cluster;

/// <summary>
/// Forwards commands over the SDK's own connection, with one framed stream per node, leader hints and retries of what
/// did not happen. Connects at the first use. Any thread.
/// </summary>
internal sealed class Forwarder : IForwarder, IAsyncDisposable
{
    /// <summary>
    /// Commits over several partitions that this node has under way for callers of its own, with those that it finishes
    /// after their callers have gone. Each may have 4 MiB.
    /// </summary>
    private const int CommitsMax = 128;

    private readonly Lazy<ConnectionPorts> _ports;
    private readonly Lazy<ClusterConnection> _connection;
    private readonly Lazy<TransactionCoordinator> _coordinator;

    /// <param name="nodes">The endpoints that the nodes advertise.</param>
    /// <param name="trustedCaFile">Authority of the nodes' certificates; null: the system's.</param>
    /// <param name="credential">Identifies these calls to the other nodes.</param>
    /// <param name="loggers">Receives connection events.</param>
    public Forwarder(IEnumerable<Uri> nodes, string? trustedCaFile, NodeCredential credential, ILoggerFactory loggers)
        : this(
            nodes,
            trustedCaFile,
            settings => ConnectionPorts.ForNetwork(settings) with
            {
                Channel = new GrpcFrameChannel(settings)
                {
                    Header = () => HeaderOf(credential),
                    Certificate = credential.Certificate,
                },
            },
            loggers)
    {
    }

    /// <param name="nodes">The endpoints that the nodes advertise.</param>
    /// <param name="trustedCaFile">Authority of the nodes' certificates; null: the system's.</param>
    /// <param name="ports">Creates the connection's ports at the first use.</param>
    /// <param name="loggers">Receives connection events.</param>
    public Forwarder(
        IEnumerable<Uri> nodes,
        string? trustedCaFile,
        Func<ConnectionSettings, ConnectionPorts> ports,
        ILoggerFactory loggers)
    {
        // Half of them may be long polls at the leader; the others still pass.
        KahunaClientOptions options =
            new() { TrustedCaFile = trustedCaFile, MaxInFlight = Limits.InFlightPerStreamMax };
        foreach (Uri node in nodes)
        {
            options.Endpoints.Add(node);
        }

        ConnectionSettings settings = options.ToSettings() with { AsksToForward = false };
        _ports = new Lazy<ConnectionPorts>(() => ports(settings));
        _connection = new Lazy<ClusterConnection>(() =>
            new ClusterConnection(settings, _ports.Value, loggers.CreateLogger("Kahuna.Forwarder")));
        _coordinator = new Lazy<TransactionCoordinator>(() =>
            new TransactionCoordinator(_connection.Value, _ports.Value, CommitsMax));
    }

    /// <summary>Runs transactions over several partitions on the same connection.</summary>
    public TransactionCoordinator Coordinator => _coordinator.Value;

    public async Task<byte[]> ForwardAsync(
        ReadOnlyMemory<byte> command, bool mayHaveHappened, TimeSpan timeLeft, CancellationToken cancellationToken)
    {
        try
        {
            Operation<ForwardedOutcome> operation = ToOperation(command, mayHaveHappened);
            operation.Request.Patience = timeLeft;
            ForwardedOutcome outcome = await _connection.Value.Run(operation, cancellationToken);
            return outcome.Bytes;
        }
        catch (KahunaException error)
        {
            ByteBuffer buffer = ByteBuffer.Rent();

            // A caller whose session was forgotten, and of whose call nothing can have been applied, takes another one.
            OutcomeStatus status = error.Answered == OutcomeStatus.SessionUnknown
                ? OutcomeStatus.SessionUnknown : OutcomeStatuses.Of(error.Code, error.Outcome);
            Outcome.WriteError(buffer, status, error.Message);
            byte[] bytes = buffer.Written.ToArray();
            buffer.Return();
            return bytes;
        }
    }

    /// <summary>The ports of the connection, which it owns and ends.</summary>
    public ConnectionPorts Ports
    {
        get
        {
            _ = _connection.Value;
            return _ports.Value;
        }
    }

    public ValueTask DisposeAsync() =>
        _connection.IsValueCreated ? _connection.Value.DisposeAsync() : ValueTask.CompletedTask;

    private static (string Name, string Value)? HeaderOf(NodeCredential credential) =>
        credential.Value is { } text ? (NodeCredential.Header, text) : null;

    private static Operation<ForwardedOutcome> ToOperation(ReadOnlyMemory<byte> bytes, bool mayHaveHappened)
    {
        Command.TryRead(bytes.Span, out Command command);
        Operation<ForwardedOutcome> operation = Operation<ForwardedOutcome>.Rent();
        operation.Request.Begin(command.Kind, command.Durability, Encoding.UTF8.GetString(command.Key));
        operation.Request.AddFlag(command.Flags, true);
        int comparedAt = bytes.Length - command.FenceName.Length - command.ComparedValue.Length;
        operation.Request.SetValue(bytes.Slice(comparedAt - command.Value.Length, command.Value.Length));
        if (command.Has(CommandFlags.IfValue))
        {
            operation.Request.AddComparison(
                command.Has(CommandFlags.NullCompared)
                    ? KahunaValue.Null
                    : new KahunaValue(bytes.Slice(comparedAt, command.ComparedValue.Length)),
                null);
        }

        if (command.Has(CommandFlags.IfRevision))
        {
            operation.Request.AddComparison(null, new Revision(command.ComparedRevision));
        }

        if (command.Has(CommandFlags.Ttl))
        {
            operation.Request.AddTtl(TimeSpan.FromMilliseconds(command.TtlMs));
        }

        if (command.Has(CommandFlags.AtRevision))
        {
            operation.Request.AddReadRevision(new Revision(command.AtRevision));
        }

        if (command.Has(CommandFlags.Number))
        {
            operation.Request.AddNumber(command.Number);
            operation.Request.FixedPartition = CommandKinds.Has(command.Kind, CommandTraits.IsList)
                ? (int)command.Number
                : null;
        }

        if (command.Has(CommandFlags.Fenced))
        {
            operation.Request.AddFence(
                Encoding.UTF8.GetString(command.FenceName), new FencingToken(command.FenceToken));
        }

        if (command.Has(CommandFlags.Session))
        {
            operation.SessionNumber.Give(command.SessionId, command.Sequence, command.Lag, command.Epoch);
            operation.MayHaveHappened = mayHaveHappened;
        }
        else
        {
            operation.Request.IsIdempotent =
                command.Kind is >= CommandKind.TransactionDecide and <= CommandKind.TransactionForget;
        }

        return operation;
    }
}
