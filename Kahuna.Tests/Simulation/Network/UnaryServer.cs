using Grpc.Core;
using Kahuna.Client.Connection;
using Kahuna.Server.Access;
using Kahuna.Server.Api;
using Kahuna.Server.Cluster;
using Kahuna.Tests.Simulation.Engine;
using Kahuna.Tests.Simulation.Nodes;
using Kahuna.Tests.Simulation.Rules;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;
using Microsoft.Extensions.Logging.Abstractions;

namespace Kahuna.Tests.Simulation.Network;

/// <summary>
/// Unary calls at a node, and what the node does for abandoned transactions: the shipped calls and the shipped
/// forwarder, which goes over the run's network. Owned by one life of a node.
/// </summary>
internal sealed class UnaryServer
{
    private readonly SimNode _node;
    private readonly SimContext _context;
    private readonly ClientNetwork.ClientChannel _channel;
    private readonly UnaryExecutor _calls;
    private readonly LockExecutor _locks;
    private readonly CancellationTokenSource _stopping = new();
    private readonly HashSet<Action<UnaryAnswer>> _waiting = [];

    public UnaryServer(
        SimNode node,
        NodeParts parts,
        ClientNetwork.ClientChannel channel,
        IReadOnlyList<Uri> nodes,
        Func<ulong> newSessionId)
    {
        _node = node;
        int life = node.Life;
        _context = new SimContext((ns, action) => node.Scheduler.After(ns, () => node.Do(life, action)));
        _channel = channel;
        Forwarder forwarder = new(
            nodes,
            null,
            _ => new ConnectionPorts(channel, node.Clock, _context, node.Id) { NewSessionId = newSessionId },
            NullLoggerFactory.Instance);
        _calls = new UnaryExecutor(parts.Admission, forwarder);
        StreamForwarding forwarding = new(_calls);
        parts.Admission.Forward = request => _context.Run(() => forwarding.Begin(request));
        parts.Settler.Start(
            SettleAsync,
            parts.Admission.Router.GroupIndexOf,
            work => _context.Post(_ => work(), null),
            _stopping.Token);
        _locks = new LockExecutor(_calls.ExecuteAsync, node.Clock);
    }

    public void Serve(int client, UnaryRequest request, TimeSpan timeLeft, Action<UnaryAnswer> answer)
    {
        _waiting.Add(answer);
        _context.Run(() => _ = ServeAsync(client, request, timeLeft, answer));
    }

    /// <summary>The node stops: calls that wait for something end.</summary>
    public void EndWaits() => _context.Run(_stopping.Cancel);

    /// <summary>
    /// The node is gone. A system that lives on closes its connections; when the power is off, nobody says anything.
    /// </summary>
    public void Die(bool power)
    {
        _channel.Die();
        if (!power)
        {
            foreach (Action<UnaryAnswer> answer in _waiting)
            {
                answer(UnaryAnswer.Lost);
            }
        }

        _waiting.Clear();
    }

    private async Task ServeAsync(
        int client, UnaryRequest request, TimeSpan timeLeft, Action<UnaryAnswer> answer)
    {
        UnaryAnswer found;
        CallerOfCall.Current = _node.Access?.CallerOf(client);
        try
        {
            using CancellationTokenSource deadline = new(timeLeft, _node.Clock);
            found = request.Command is { } command
                ? await ExecuteAsync(command, timeLeft, deadline.Token)
                : await AcquireAsync(request, timeLeft, deadline.Token);
        }
        catch (RpcException error)
        {
            found = new UnaryAnswer(null, error);
        }
        catch (Exception error) when (error is not Rules.RuleBrokenException)
        {
            _node.Break($"a unary call ends with {error}");
            return;
        }

        if (_waiting.Remove(answer))
        {
            answer(found);
        }
    }

    private async Task<UnaryAnswer> ExecuteAsync(byte[] command, TimeSpan timeLeft, CancellationToken deadline)
    {
        ByteBuffer buffer = ByteBuffer.Rent(command.Length);
        command.CopyTo(buffer.Take(command.Length));
        byte[] outcome = await _calls.ExecuteAsync(buffer, timeLeft, deadline);
        _node.Rules.Answered(_node, command, outcome);
        return new UnaryAnswer(outcome, null);
    }

    private async Task<UnaryAnswer> AcquireAsync(UnaryRequest request, TimeSpan timeLeft, CancellationToken deadline)
    {
        LockCommandBuilder claim = LockCommandBuilder.Of(request.Acquire!);
        byte[] command = Encode(claim, request.Session);
        return new UnaryAnswer(null, null)
        {
            Acquired =
                await new LockAcquisition(
                    _locks, claim, request.Session != 0, timeLeft, deadline, _stopping.Token).RunAsync(
                command),
        };
    }

    /// <summary>A command of the settler, with a look at what it says.</summary>
    private async Task<byte[]> SettleAsync(ByteBuffer buffer, uint waitMs, CancellationToken ct)
    {
        bool isFinish = (CommandKind)buffer.Written[0] == CommandKind.TransactionFinish;
        TransactionId? id = NoteAsked(buffer.Written);
        CallerOfCall.Current = Caller.Node;
        byte[] answer = await _calls.OutcomeAsync(buffer, waitMs, ct);
        if (id is { } asked && Outcome.TryRead(answer, out Outcome outcome) && outcome.Status == OutcomeStatus.Applied)
        {
            _node.Rules.Transactions.Told(_node, asked, isFinish, outcome.Number);
        }

        return answer;
    }

    private TransactionId? NoteAsked(ReadOnlySpan<byte> bytes)
    {
        Command.TryRead(bytes, out Command command);
        _node.Rules.Transactions.Asked(_node, in command);
        _node.Rules.Transactions.Settled += command.Kind == CommandKind.TransactionFinish ? 1 : 0;
        return TransactionRules.IdIn(in command);
    }

    private static byte[] Encode(LockCommandBuilder claim, ulong session)
    {
        Command command = claim.Acquire(claim.WaitMs);
        if (session != 0)
        {
            command.Flags |= CommandFlags.Session | CommandFlags.Opening;
            command.SessionId = session;
            command.Sequence = 1;
        }

        return LockExecutor.Encode(in command);
    }
}
