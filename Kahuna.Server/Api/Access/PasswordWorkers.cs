using System.Collections.Concurrent;

namespace Kahuna.Server.Api.Access;

/// <summary>
/// Hashes passwords on threads of its own: each hash takes a large part of a second by design, and must not keep the
/// pool from serving. The threads start with the first hash. Owned by the node; any thread.
/// </summary>
internal sealed class PasswordWorkers : IDisposable
{
    /// <summary>Hashes at a time.</summary>
    private const int Threads = 2;

    /// <summary>Hashes that wait.</summary>
    private const int WaitingMax = 64;

    private readonly BlockingCollection<Action> _waiting = new(WaitingMax);
    private int _started;

    /// <summary>Hands over a hash, which must not throw; false if too many wait.</summary>
    public bool TryRun(Action work)
    {
        if (Interlocked.Exchange(ref _started, 1) == 0)
        {
            for (int i = 0; i < Threads; i++)
            {
                new Thread(Run) { IsBackground = true, Name = "Kahuna passwords" }.Start();
            }
        }

        try
        {
            return _waiting.TryAdd(work);
        }
        catch (InvalidOperationException)
        {
            // The node stops.
            return false;
        }
    }

    /// <summary>The threads end with what they have begun.</summary>
    public void Dispose() => _waiting.CompleteAdding();

    private void Run()
    {
        foreach (Action work in _waiting.GetConsumingEnumerable())
        {
            work();
        }
    }
}
