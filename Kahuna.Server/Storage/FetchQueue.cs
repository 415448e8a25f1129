using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Storage;

/// <summary>A request to read entries for a follower.</summary>
internal readonly record struct FetchRequest(
    ILogSink Sink, GroupId Group, NodeId Follower, LogIndex First, int BytesMax);

/// <summary>
/// Requests to read entries, waiting for the reading thread. Bounded by the groups' cores: one request per follower at
/// a time. Any thread.
/// </summary>
internal sealed class FetchQueue
{
    private readonly Lock _lock = new();
    private readonly Queue<FetchRequest> _waiting = new();

    public void Put(in FetchRequest request)
    {
        lock (_lock)
        {
            _waiting.Enqueue(request);
        }
    }

    public bool TryTake(out FetchRequest request)
    {
        lock (_lock)
        {
            return _waiting.TryDequeue(out request);
        }
    }
}
