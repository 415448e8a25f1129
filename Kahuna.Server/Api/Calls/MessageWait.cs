using System.Diagnostics;
using Grpc.Core;

namespace Kahuna.Server.Api.Calls;

/// <summary>
/// The wait for the rest of a message: what has arrived of it, which counts in the rooms of the connection and the node, and since when it is waited for. Owned by
/// the reader of a call, one thread at a time; <see cref="Left"/> from any thread.
/// </summary>
/// <param name="connection">The room of the call's connection; null: not counted.</param>
/// <param name="node">The room of the node.</param>
internal sealed class MessageWait(RequestRoom? connection, RequestRoom node)
{
    private bool _greeted;
    private long _held;
    private long _since;

    /// <summary>
    /// Begins to wait for more, with <paramref name="bytes"/> of a message here. A stream with nothing begun may be silent for as long as it likes once its first
    /// message has come.
    /// </summary>
    /// <exception cref="RpcException">RESOURCE_EXHAUSTED: the connection, or the node, has no room for requests in parts.</exception>
    public void Begin(long bytes)
    {
        Hold(bytes);
        if (bytes == 0 && _greeted)
        {
            Volatile.Write(ref _since, 0);
        }
        else if (_since == 0)
        {
            Volatile.Write(ref _since, Stopwatch.GetTimestamp());
        }
    }

    /// <summary>A message is complete, but not taken yet: what is here of it is held, and nobody waits for more.</summary>
    public void Rest()
    {
        _greeted = true;
        Volatile.Write(ref _since, 0);
    }

    /// <summary>A message is complete, or the call is over: nothing is held and nobody waits.</summary>
    public void End()
    {
        _greeted = true;
        Volatile.Write(ref _since, 0);
        Hold(0);
    }

    /// <summary>What the wait for one message leaves of <paramref name="patience"/>, zero at the least; null when no message is waited for.</summary>
    public TimeSpan? Left(TimeSpan patience)
    {
        if (Volatile.Read(ref _since) is not (var since and > 0))
        {
            return null;
        }

        TimeSpan left = patience - Stopwatch.GetElapsedTime(since);
        return left > TimeSpan.Zero ? left : TimeSpan.Zero;
    }

    private void Hold(long bytes)
    {
        long more = bytes - _held;
        if (more == 0)
        {
            return;
        }

        _held = bytes;
        bool hasConnection = connection?.Add(more) ?? true;
        bool hasNode = node.Add(more);
        if (more > 0 && bytes > RequestRoom.SmallBytes && !(hasConnection && hasNode))
        {
            string whose = hasConnection ? "node" : "connection";
            long most = hasConnection ? node.BytesMax : connection!.BytesMax;
            throw new RpcException(new Status(
                StatusCode.ResourceExhausted,
                $"The {whose} has {most >> 20} MiB of requests that are not complete, its limit; this one was not carried out. Finish the others first, or send smaller ones."));
        }
    }
}
