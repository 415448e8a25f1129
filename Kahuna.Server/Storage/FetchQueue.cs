namespace Kahuna.Server.Storage;

/// <summary>Wishes to read entries, waiting for the reading thread. Any thread. Bounded by the groups' cores: one wish per follower at a time.</summary>
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
