using Kahuna.Client.Connection;
using Kahuna.Client.Wire.Buffers;
using Kahuna.Client.Wire.Grpc;
using Kahuna.Server.Api;
using Kahuna.Server.Cluster;
using Kahuna.Tests.Simulation.Engine;
using Kahuna.Tests.Simulation.Nodes;
using Microsoft.Extensions.Logging.Abstractions;

namespace Kahuna.Tests.Simulation.Network;

/// <summary>Unary calls at a node: the shipped calls and the shipped forwarder, which goes over the run's network. Owned by one life of a node.</summary>
internal sealed class UnaryServer
{
    private readonly SimNode _node;
    private readonly SimContext _context;
    private readonly ClientNetwork.ClientChannel _channel;
    private readonly UnaryCalls _calls;
    private readonly HashSet<Action<UnaryAnswer>> _waiting = [];

    public UnaryServer(SimNode node, RequestDoor door, ClientNetwork.ClientChannel channel, IReadOnlyList<Uri> nodes, Func<ulong> newSessionId)
    {
        _node = node;
        int life = node.Life;
        _context = new SimContext((ns, action) => node.Scheduler.After(ns, () => node.Do(life, action)));
        _channel = channel;
        Forwarder forwarder = new(nodes, null, _ => new ConnectionPorts(channel, node.Clock, _context, node.Id) { NewSessionId = newSessionId }, NullLoggerFactory.Instance);
        _calls = new UnaryCalls(door, forwarder);
    }

    public void Serve(byte[] command, TimeSpan timeLeft, Action<UnaryAnswer> answer)
    {
        _waiting.Add(answer);
        _context.Run(() => _ = ServeAsync(command, timeLeft, answer));
    }

    /// <summary>The node is gone. A system that lives on closes its connections; when the power is off, nobody says anything.</summary>
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

    private async Task ServeAsync(byte[] command, TimeSpan timeLeft, Action<UnaryAnswer> answer)
    {
        UnaryAnswer found;
        try
        {
            using CancellationTokenSource deadline = new(timeLeft, _node.Clock);
            ByteBuffer buffer = ByteBuffer.Rent(command.Length);
            command.CopyTo(buffer.Take(command.Length));
            byte[] outcome = await _calls.ExecuteAsync(buffer, timeLeft, deadline.Token);
            _node.Rules.Answered(_node, command, outcome);
            found = new UnaryAnswer(outcome, null);
        }
        catch (GrpcException error)
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
}
