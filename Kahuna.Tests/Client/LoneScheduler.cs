using System.Collections.Concurrent;

namespace Kahuna.Tests.Client;

/// <summary>A task scheduler with a thread of its own, as actor frameworks have one. Owned by one test.</summary>
internal sealed class LoneScheduler : TaskScheduler, IDisposable
{
    private readonly BlockingCollection<Task> _queue = [];

    public LoneScheduler() => new Thread(Run) { IsBackground = true, Name = "lone scheduler" }.Start();

    public Task<T> RunAsync<T>(Func<T> work) =>
        Task.Factory.StartNew(work, CancellationToken.None, TaskCreationOptions.None, this).WaitAsync(Wait.Longest);

    public void Dispose() => _queue.CompleteAdding();

    /// <inheritdoc/>
    protected override IEnumerable<Task> GetScheduledTasks() => [.. _queue];

    /// <inheritdoc/>
    protected override void QueueTask(Task task) => _queue.Add(task);

    /// <inheritdoc/>
    protected override bool TryExecuteTaskInline(Task task, bool taskWasPreviouslyQueued) => false;

    private void Run()
    {
        foreach (Task task in _queue.GetConsumingEnumerable())
        {
            TryExecuteTask(task);
        }
    }
}
