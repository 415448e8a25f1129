using System.Diagnostics;
using Grpc.Core;

namespace Kahuna.Server.Api.Calls;

/// <summary>
/// The part of a message that has arrived: its bytes, which count against the budgets of connection and node, and how
/// long the rest is awaited. Owned by the reader of a call, one thread at a time; <see cref="TimeLeft"/> from any
/// thread.
/// </summary>
/// <param name="connection">The connection's budget; null: not counted.</param>
/// <param name="node">The node's budget.</param>
internal sealed class IncompleteMessage(RequestBudget? connection, RequestBudget node)
{
    private bool _greeted;
    private long _counted;
    private long _since;

    /// <summary>
    /// Begins to wait for the rest after <paramref name="bytes"/> of a message. Between messages, after its first one,
    /// a stream may be silent without limit.
    /// </summary>
    /// <exception cref="RpcException">RESOURCE_EXHAUSTED: the connection or the node has its maximum of incomplete
    /// requests.</exception>
    public void Begin(long bytes)
    {
        Count(bytes);
        if (bytes == 0 && _greeted)
        {
            Volatile.Write(ref _since, 0);
        }
        else if (_since == 0)
        {
            Volatile.Write(ref _since, Stopwatch.GetTimestamp());
        }
    }

    /// <summary>Stops the wait of a complete message that is not taken yet. Its bytes stay counted.</summary>
    public void StopTimer()
    {
        _greeted = true;
        Volatile.Write(ref _since, 0);
    }

    /// <summary>Ends the wait and releases the bytes: the message was taken, or the call is over.</summary>
    public void End()
    {
        _greeted = true;
        Volatile.Write(ref _since, 0);
        Count(0);
    }

    /// <summary>
    /// Time until <paramref name="timeout"/> ends the wait, at least zero; null if no message is awaited.
    /// </summary>
    public TimeSpan? TimeLeft(TimeSpan timeout)
    {
        if (Volatile.Read(ref _since) is not (var since and > 0))
        {
            return null;
        }

        TimeSpan left = timeout - Stopwatch.GetElapsedTime(since);
        return left > TimeSpan.Zero ? left : TimeSpan.Zero;
    }

    private void Count(long bytes)
    {
        long more = bytes - _counted;
        if (more == 0)
        {
            return;
        }

        _counted = bytes;
        bool hasConnection = connection?.Add(more) ?? true;
        bool hasNode = node.Add(more);
        if (more > 0 && bytes > RequestBudget.SmallBytes && !(hasConnection && hasNode))
        {
            string whose = hasConnection ? "node" : "connection";
            long limit = hasConnection ? node.BytesMax : connection!.BytesMax;
            throw new RpcException(new Status(
                StatusCode.ResourceExhausted,
                $"The {whose} has {limit >> 20} MiB of incomplete requests, its limit; this one was not executed. "
                    + $"Complete the others first, or send smaller ones."));
        }
    }
}
