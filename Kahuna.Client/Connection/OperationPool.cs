namespace Kahuna.Client.Connection;

/// <summary>A bounded stack of idle objects; what exceeds it is left to the collector. Any thread.</summary>
internal sealed class OperationPool<T>(int capacity)
    where T : class
{
    private readonly Stack<T> _idle = new();
    private readonly Lock _lock = new();

    public T? TryTake()
    {
        lock (_lock)
        {
            return _idle.TryPop(out T? item) ? item : null;
        }
    }

    public void Give(T item)
    {
        lock (_lock)
        {
            if (_idle.Count < capacity)
            {
                _idle.Push(item);
            }
        }
    }
}
