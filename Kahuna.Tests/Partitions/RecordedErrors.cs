using System.Collections.Concurrent;
using Kahuna.Server.Partitions.Ports;

namespace Kahuna.Tests.Partitions;

/// <summary>Notes what would end the process. Any thread.</summary>
internal sealed class RecordedErrors : IFatalErrors
{
    private readonly TaskCompletionSource _first = new(TaskCreationOptions.RunContinuationsAsynchronously);

    public ConcurrentQueue<(string Where, Exception Error)> Raised { get; } = [];

    /// <summary>Completes when something was raised.</summary>
    public Task First => _first.Task;

    public void Raise(string where, Exception error)
    {
        Raised.Enqueue((where, error));
        _first.TrySetResult();
    }
}
