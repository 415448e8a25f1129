using System.Runtime.InteropServices;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Partitions.Snapshots;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Hosting;

/// <summary>
/// The thread on which a node stores, sends and takes in states; where the processors are busy it gets a third of
/// another thread's share. Started once; disposed by the node, before the store is.
/// </summary>
internal sealed partial class CheckpointThread : IDisposable
{
    private const int OfProcess = 0;
    private const int Caller = 0;

    /// <summary>Enough to let writes pass, too little to fall behind them.</summary>
    private const int Niceness = 5;

    private readonly CheckpointService _keeper;
    private readonly IFatalErrors _fatal;
    private readonly AutoResetEvent _bell = new(initialState: false);
    private readonly Thread _thread;
    private volatile bool _stopping;

    /// <param name="keeper">The work.</param>
    /// <param name="fatal">Is told of what the work throws.</param>
    public CheckpointThread(CheckpointService keeper, IFatalErrors fatal)
    {
        _keeper = keeper;
        _fatal = fatal;
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

    /// <summary>For Linux a thread is a process here. Should it fail, the thread runs as all others do.</summary>
    [LibraryImport("libc", EntryPoint = "setpriority")]
    private static partial int SetPriority(int kind, int which, int niceness);

    private void Run()
    {
        if (OperatingSystem.IsLinux())
        {
            _ = SetPriority(OfProcess, Caller, Niceness);
        }

        try
        {
            while (!_stopping)
            {
                if (!_keeper.Step())
                {
                    NodeTime due = _keeper.Due;
                    long wait = due == NodeTime.Never ? Timeout.Infinite : Math.Clamp(due - _keeper.Now, 0, 60_000);
                    _bell.WaitOne((int)wait);
                }
            }
        }
        catch (Exception error)
        {
            _fatal.Raise("the state thread", error);
        }
    }
}
