using System.Buffers;
using System.Buffers.Binary;
using Google.Protobuf;
using Kahuna.Server.Access;
using Kahuna.Server.Api;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Tests.Simulation.Nodes;
using Kahuna.Tests.Simulation.Rules;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Frames;
using Frame = Kahuna.Wire.Frames.Frame;

namespace Kahuna.Tests.Simulation.Network;

/// <summary>
/// The node's end of a client's connection. It stands for the shipped ExchangeStream, which is bound to the web
/// server's pipes: greets, tells the map, hands requests to the shipped admission and sends replies back. Owned by one
/// life of a node.
/// </summary>
internal sealed class ServerSession : ReplySink
{
    /// <summary>
    /// Bytes that are on their way or lie at a client that does not read: what the system's buffers of both ends hold.
    /// </summary>
    private const int WindowBytes = 64 * 1024;

    private readonly ClientStream _stream;
    private readonly SimNode _node;
    private readonly RequestAdmission _admission;
    private readonly IDisposable _watch;
    private readonly int _life;
    private readonly int _source;
    private readonly Dictionary<uint, string> _sets = [];
    private readonly Dictionary<uint, string> _awaits = [];
    private readonly Dictionary<uint, (TransactionId Id, bool IsFinish)> _decides = [];
    private readonly Queue<byte[]> _unsent = new();
    private byte[] _buffered = [];
    private bool _greeted;
    private bool _ended;
    private bool _mapDue;

    public ServerSession(ClientStream stream, SimNode node, RequestAdmission admission, int loops)
        : base(loops, admission.Room)
    {
        _stream = stream;
        _node = node;
        _admission = admission;
        _life = node.Life;
        _source = node.NewSource();
        _watch = admission.Router.View.WatchRoutes(SendMap);
    }

    /// <summary>Whose connection it is; null: nobody has to say so.</summary>
    public Caller? Caller { get; init; }

    public override bool IsClosed => _ended;

    /// <summary>Bytes of the client have arrived at the node.</summary>
    public void Received(byte[] bytes) => _node.Do(_life, () =>
    {
        if (_ended)
        {
            return;
        }

        _buffered = [.. _buffered, .. bytes];
        ReadOnlySequence<byte> rest = new(_buffered);
        while (RawStream.TryReadMessage(ref rest, Limits.FrameBytesMax, out ReadOnlySequence<byte> message))
        {
            if (!_greeted)
            {
                _greeted = true;
                Greet();
            }
            else
            {
                NoteSets(message.ToArray());
                if (_admission.Accept(message, this, Caller) >= 0)
                {
                    continue;
                }

                _node.Break("a frame of the client is malformed");
            }
        }

        _buffered = rest.ToArray();
    }, _source);

    public override void Deliver(ByteBuffer frame, int count)
    {
        Frame.End(frame, count);
        _node.Answered(this, frame.Written, count);
        Send(frame);
    }

    /// <summary>The value that a request sets; null for one that sets none, and after the first question.</summary>
    public string? ValueOf(uint number) => _sets.Remove(number, out string? value) ? value : null;

    /// <summary>
    /// The persistent lock that a request asks about its place in; null for others, and after the first question.
    /// </summary>
    public string? LockOf(uint number) => _awaits.Remove(number, out string? name) ? name : null;

    /// <summary>
    /// The transaction that a request decides or finishes; null for others, and after the first question.
    /// </summary>
    public (TransactionId Id, bool IsFinish)? TransactionOf(uint number) =>
        _decides.Remove(number, out (TransactionId, bool) asked) ? asked : null;

    /// <summary>The client is gone.</summary>
    public void End()
    {
        if (!_ended)
        {
            _ended = true;
            _watch.Dispose();
            _node.Forget(this);
            _node.Do(_life, DropUnsent, _source);
        }
    }

    /// <summary>The client has read: what waited for that leaves.</summary>
    public void Resume() => _node.Do(_life, () =>
    {
        int bytes = 0;
        while (!_ended && _stream.UnreadBytes < WindowBytes && _unsent.TryDequeue(out byte[]? frame))
        {
            _stream.SendToClient(frame);
            bytes += frame.Length;
        }

        _stream.IsAwaited = _unsent.Count > 0;
        if (bytes > 0)
        {
            Left(bytes);
        }
    }, _source);

    /// <summary>The connection is lost.</summary>
    public void Reset() => _stream.Reset();

    /// <summary>The node is gone.</summary>
    public void Die(string? reason)
    {
        _ended = true;
        _stream.EndFromNode(reason);
    }

    private void NoteSets(ReadOnlySpan<byte> message)
    {
        if (!Frame.TryGetPayload(message, out ReadOnlySpan<byte> payload)
            || !Frame.TryReadHeader(payload, out _, out _, out int count))
        {
            return;
        }

        ReadOnlySpan<byte> rest = payload[Frame.HeaderBytes..];
        for (int i = 0; i < count; i++)
        {
            uint number = BinaryPrimitives.ReadUInt32LittleEndian(rest);
            int length = BinaryPrimitives.ReadInt32LittleEndian(rest[8..]);
            _awaits.Remove(number);
            _decides.Remove(number);
            if (Command.TryRead(rest.Slice(Frame.RequestHeaderBytes, length), out Command command)
                && command
                    is { Kind: CommandKind.Set or CommandKind.LockAwait, Durability: Durability.Persistent })
            {
                bool sets = command.Kind == CommandKind.Set;
                (sets ? _sets : _awaits)[number] = System.Text.Encoding.UTF8.GetString(
                    sets ? command.Value : command.Key);
            }
            else if (TransactionRules.IdIn(in command) is { } id)
            {
                _decides[number] = (id, command.Kind == CommandKind.TransactionFinish);
            }

            _node.Rules.Transactions.Asked(_node, in command);

            rest = rest[(Frame.RequestHeaderBytes + length)..];
        }
    }

    private void Greet()
    {
        ByteBuffer hello = ByteBuffer.Rent();
        Frame.WriteServerHello(hello, _admission.Router.View.Slots.Version);
        Send(hello);
        SendMap();
    }

    /// <summary>A burst of changes is one map.</summary>
    private void SendMap()
    {
        if (_mapDue || _ended || !_greeted)
        {
            return;
        }

        _mapDue = true;
        _node.After(1_000, () =>
        {
            _mapDue = false;
            ByteBuffer frame = ByteBuffer.Rent();
            Frame.Begin(frame, FrameKind.Map);
            _admission.Router.View.Describe().WriteTo((IBufferWriter<byte>)frame);
            Frame.End(frame, 1);
            Send(frame);
        });
    }

    private void Send(ByteBuffer frame)
    {
        if (!_ended && _unsent.Count == 0 && _stream.UnreadBytes < WindowBytes)
        {
            _stream.SendToClient(frame.Written.ToArray());
        }
        else if (!_ended)
        {
            Waits(frame.Length);
            _unsent.Enqueue(frame.Written.ToArray());
            _stream.IsAwaited = true;
        }

        frame.Return();
    }

    private void DropUnsent()
    {
        int bytes = _unsent.Sum(static frame => frame.Length);
        _unsent.Clear();
        Left(bytes);
    }
}
