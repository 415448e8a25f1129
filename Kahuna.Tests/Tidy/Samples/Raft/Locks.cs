namespace Kahuna.Tests.Tidy.Samples.Raft;

/// <summary>Negative control: a lock.</summary>
internal sealed class Locks
{
    private readonly object _gate = new();
    private int _count;

    public int Add()
    {
        lock (_gate)
        {
            return ++_count;
        }
    }
}
