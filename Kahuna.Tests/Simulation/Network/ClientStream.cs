using Kahuna.Client.Connection;
using Kahuna.Tests.Simulation.Engine;
using Kahuna.Tests.Simulation.Nodes;

namespace Kahuna.Tests.Simulation.Network;

/// <summary>
/// One connection between a client and a node, seen from the client; the node's end is its <see cref="ServerSession"/>.
/// While the way is cut bytes wait, as TCP's do, until the side that hears nothing gives it up. Owned by one run.
/// </summary>
internal sealed class ClientStream : IFrameStream
{
    private const long RetryNs = 50_000_000;

    private readonly ClientNetwork _network;
    private readonly int _client;
    private readonly SimNode _node;
    private readonly ServerSession _session;
    private readonly Queue<byte[]> _received = new();
    private int _read;
    private readonly Way _toNode = new();
    private readonly Way _toClient = new();
    private bool _ended;
    private string? _reason;
    private TaskCompletionSource<int>? _reader;
    private Memory<byte> _target;

    public ClientStream(ClientNetwork network, int client, SimNode node)
    {
        _network = network;
        _client = client;
        _node = node;
        _session = node.OpenSession(this);
    }

    public bool HasEnded => _ended;

    /// <summary>The number of the client.</summary>
    public int Client => _client;

    /// <summary>Bytes that the node has sent and the client has not read.</summary>
    public int UnreadBytes { get; private set; }

    /// <summary>The node has more to send when the client has read.</summary>
    public bool IsAwaited { get; set; }

    private SimScheduler Scheduler => _network.Scheduler;

    public ValueTask WriteAsync(ReadOnlyMemory<byte> messages)
    {
        Scheduler.CheckThread("wrote to a node");
        if (_ended)
        {
            throw new IOException(_reason ?? "the stream has ended");
        }

        byte[] copy = messages.ToArray();
        Carry(_toNode, () => _session.Received(copy));
        return _network.Config.Yields ? new ValueTask(Later(() => true)) : ValueTask.CompletedTask;
    }

    public ValueTask<int> ReadAsync(Memory<byte> buffer)
    {
        Scheduler.CheckThread("read from a node");
        if (_received.Count > 0)
        {
            return _network.Config.Yields
                ? new ValueTask<int>(Later(() => CopyTo(buffer)))
                : new ValueTask<int>(CopyTo(buffer));
        }

        if (_ended)
        {
            return new ValueTask<int>(0);
        }

        _target = buffer;
        _reader = new TaskCompletionSource<int>(TaskCreationOptions.RunContinuationsAsynchronously);
        return new ValueTask<int>(_reader.Task);
    }

    public ValueTask<string?> EndReasonAsync() => new(_reason);

    public void Abort()
    {
        if (!_ended)
        {
            End("aborted");
            Scheduler.After(_network.DelayNs(), _session.End);
        }
    }

    public ValueTask DisposeAsync()
    {
        Abort();
        return ValueTask.CompletedTask;
    }

    /// <summary>By the session: bytes for the client.</summary>
    public void SendToClient(byte[] bytes)
    {
        UnreadBytes += bytes.Length;
        Carry(_toClient, () => Arrive(bytes));
    }

    /// <summary>By the session: the node ends the stream, or is gone.</summary>
    public void EndFromNode(string? reason) => Carry(_toClient, () => End(reason));

    /// <summary>
    /// The connection is lost: what is on its way is lost with it, or what the client had sent still comes, when nobody
    /// expects it any more.
    /// </summary>
    public void Reset()
    {
        if (_ended)
        {
            return;
        }

        End("connection reset");
        if (_toNode.Waiting.Count == 0 || !_network.IsLate(out long delayNs))
        {
            _session.End();
            return;
        }

        Action[] late = [.. _toNode.Waiting];
        Scheduler.After(delayNs, () =>
        {
            foreach (Action arrive in late)
            {
                arrive();
            }

            Scheduler.After(_network.DelayNs(), _session.End);
        });
    }

    private Task<T> Later<T>(Func<T> result)
    {
        TaskCompletionSource<T> source = new(TaskCreationOptions.RunContinuationsAsynchronously);
        Scheduler.After(1_000, () => source.SetResult(result()));
        return source.Task;
    }

    private void Carry(Way way, Action arrive)
    {
        way.Waiting.Enqueue(arrive);
        way.LastNs = Math.Max(way.LastNs, Scheduler.NowNs + _network.DelayNs());
        Scheduler.At(way.LastNs, () =>
        {
            way.Due++;
            Pass(way);
        });
    }

    private void Pass(Way way)
    {
        while (way.Due > 0 && !_ended)
        {
            if (_network.IsCut(_client, _node.Id))
            {
                way.CutSinceNs = way.CutSinceNs == 0 ? Scheduler.NowNs : way.CutSinceNs;
                if (Scheduler.NowNs - way.CutSinceNs > _network.Config.SilenceNs)
                {
                    Reset();
                    return;
                }

                if (!way.Retrying)
                {
                    way.Retrying = true;
                    Scheduler.After(RetryNs, () =>
                    {
                        way.Retrying = false;
                        Pass(way);
                    });
                }

                return;
            }

            way.CutSinceNs = 0;
            way.Due--;
            way.Waiting.Dequeue()();
        }
    }

    private void Arrive(byte[] bytes)
    {
        _received.Enqueue(bytes);
        if (_reader is { } reader)
        {
            _reader = null;
            reader.SetResult(CopyTo(_target));
        }
    }

    private void End(string? reason)
    {
        if (_ended)
        {
            return;
        }

        _ended = true;
        _reason = reason;
        Scheduler.Note(SimEvent.StreamEnd, _node.Id, _client);
        if (_reader is { } reader)
        {
            _reader = null;
            reader.SetResult(0);
        }
    }

    private int CopyTo(Memory<byte> buffer)
    {
        byte[] first = _received.Peek();
        int count = Math.Min(buffer.Length, first.Length - _read);
        first.AsMemory(_read, count).CopyTo(buffer);
        _read += count;
        UnreadBytes -= count;
        if (IsAwaited)
        {
            IsAwaited = false;
            Scheduler.After(_network.DelayNs(), _session.Resume);
        }

        if (_read == first.Length)
        {
            _received.Dequeue();
            _read = 0;
        }

        return count;
    }

    /// <summary>What is on its way in one direction, in order.</summary>
    private sealed class Way
    {
        public Queue<Action> Waiting { get; } = new();

        public long LastNs { get; set; }

        public int Due { get; set; }

        public bool Retrying { get; set; }

        /// <summary>Since when the first byte waits for the way to be whole; 0: it does not.</summary>
        public long CutSinceNs { get; set; }
    }
}
