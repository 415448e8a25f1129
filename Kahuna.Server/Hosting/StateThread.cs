using Kahuna.Server.Partitions.States;

namespace Kahuna.Server.Hosting;

/// <summary>The thread on which a node stores, sends and takes in states. Started once; disposed by the node, before the store is.</summary>
internal sealed class StateThread : IDisposable
{
    private readonly StateKeeper _keeper;
    private readonly AutoResetEvent _bell = new(initialState: false);
    private readonly Thread _thread;
    private volatile bool _stopping;

    public StateThread(StateKeeper keeper)
    {
        _keeper = keeper;
        _thread = new Thread(Run) { IsBackground = true, Name = "kahuna-state" };
    }

    public void Start() => _thread.Start();

    /// <summary>There may be work. Any thread.</summary>
    public void Wake() => _bell.Set();

    /// <summary>Ends after the step under way.</summary>
    public void Dispose()
    {
        _stopping = true;
        _bell.Set();
        if (_thread.IsAlive)
        {
            _thread.Join();
        }

        _keeper.Dispose();
        _bell.Dispose();
    }

    private void Run()
    {
        while (!_stopping)
        {
            if (!_keeper.Step())
            {
                long due = _keeper.DueMs;
                long wait = due == long.MaxValue ? Timeout.Infinite : Math.Clamp(due - _keeper.NowMs, 0, 60_000);
                _bell.WaitOne((int)wait);
            }
        }
    }
}
