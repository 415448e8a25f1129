using System.Diagnostics;
using System.Threading.Channels;
using Kahuna.Server.Api;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Hosting.Measurements;

/// <summary>
/// Makes the activities of operations, with an event for each stage (docs/traces.md). A loop only hands over what it
/// knows; the activities are made on a thread of the pool, so that a listener that is slow or throws cannot hold a loop
/// up. When the queue is full, traces are lost and counted. Owned by the node; any thread.
/// </summary>
internal sealed class OperationTraces : IAsyncDisposable
{
    /// <summary>Operations that wait for their activities, at most.</summary>
    private const int QueuedMax = 2_048;

    private static readonly TimeSpan s_lastPatience = TimeSpan.FromSeconds(3);

    private readonly NodeId _node;
    private readonly TimeProvider _clock;
    private readonly Channel<EndedOperation> _queue;
    private readonly Lazy<Task> _maker;
    private long _lost;

    /// <summary>Begins with nothing.</summary>
    /// <param name="node">The node, as the activities name it.</param>
    /// <param name="ratio">The share of the operations without a caller's trace that get one of their own.</param>
    /// <param name="clock">The node's clock.</param>
    public OperationTraces(NodeId node, double ratio, TimeProvider clock)
    {
        _node = node;
        _clock = clock;
        Server = new ServerTraces(clock, ratio);
        _queue = Channel.CreateBounded<EndedOperation>(
            new BoundedChannelOptions(QueuedMax) { FullMode = BoundedChannelFullMode.DropWrite, SingleReader = true },
            _ => Interlocked.Increment(ref _lost));
        _maker = new Lazy<Task>(() => Task.Run(MakeAllAsync));
    }

    /// <summary>The node's traces.</summary>
    public ServerTraces Server { get; }

    /// <summary>Operations whose trace was lost, because more ended than activities could be made.</summary>
    public long Lost => Volatile.Read(ref _lost);

    /// <summary>A traced operation has ended. Returns the id of its trace; empty: it has none yet.</summary>
    /// <param name="operation">Valid during the call.</param>
    public string End(LongOperation operation)
    {
        if (!Server.Contexts.TryEnd(operation.Tag.Trace, out ActivityContext parent))
        {
            return "";
        }

        uint total = operation.Answered - operation.Tag.Stamp;
        _queue.Writer.TryWrite(new EndedOperation(
            parent,
            (CommandKind)operation.Tag.Kind,
            (Durability)operation.Tag.Durability,
            operation.Group?.Partition,
            operation.Status,
            _clock.GetUtcNow() - TimeSpan.FromMicroseconds(total),
            OperationEvents.Of(operation)));
        _ = _maker.Value;
        return parent == default ? "" : parent.TraceId.ToHexString();
    }

    /// <summary>Makes the activities that are left, for 3 s at most.</summary>
    public async ValueTask DisposeAsync()
    {
        _queue.Writer.TryComplete();
        if (_maker.IsValueCreated)
        {
            await Task.WhenAny(_maker.Value, Task.Delay(s_lastPatience)).ConfigureAwait(false);
        }

        Server.Dispose();
    }

    private async Task MakeAllAsync()
    {
        await foreach (EndedOperation ended in _queue.Reader.ReadAllAsync().ConfigureAwait(false))
        {
            try
            {
                Make(ended);
            }
            catch (Exception error) when (error is not OutOfMemoryException)
            {
                // A listener has failed. The next activity may succeed.
                Interlocked.Increment(ref _lost);
            }
        }
    }

    private void Make(EndedOperation ended)
    {
        // The flow of this loop must not become part of any trace.
        Activity.Current = null;
        string name = OperationNames.Of(ended.Kind);
        using Activity? activity = Server.Source.StartActivity(
            ActivityKind.Server, ended.Parent, startTime: ended.BeganAt, name: name);
        if (activity is null)
        {
            return;
        }

        activity.SetTag("db.system.name", "kahuna");
        activity.SetTag("db.operation.name", name);
        activity.SetTag("kahuna.durability", OperationNames.Of(ended.Durability));
        activity.SetTag("kahuna.node.id", (int)_node.Value);
        activity.SetTag("kahuna.outcome", OperationNames.Of(ended.Status));
        if (ended.Partition is { } partition)
        {
            activity.SetTag("kahuna.partition", partition);
        }

        if (ended.Status >= OutcomeStatus.InvalidArgument)
        {
            activity.SetTag("error.type", OperationNames.Of(ended.Status));
            activity.SetStatus(ActivityStatusCode.Error);
        }

        foreach ((string stage, uint us) in ended.Events)
        {
            activity.AddEvent(new ActivityEvent(stage, ended.BeganAt + TimeSpan.FromMicroseconds(us)));
        }

        activity.SetEndTime((ended.BeganAt + TimeSpan.FromMicroseconds(ended.Events[^1].Us)).UtcDateTime);
    }

    private sealed record EndedOperation(
        ActivityContext Parent, CommandKind Kind, Durability Durability, int? Partition, OutcomeStatus Status,
        DateTimeOffset BeganAt, List<(string Name, uint Us)> Events);
}
