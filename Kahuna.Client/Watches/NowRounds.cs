using Kahuna.Client.Connection;
using Kahuna.Client.Outcomes;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Watches;

namespace Kahuna.Client.Watches;

/// <summary>
/// Finds out where the changes of one level are now: asks the leaders of all partitions. Calls that come while a round
/// is under way share the next one. Owned by the <see cref="ClientWatches"/>; any thread.
/// </summary>
internal sealed class NowRounds(ClusterConnection connection, Durability durability)
{
    private readonly Lock _lock = new();
    private Task<WatchPosition>? _running;
    private Task<WatchPosition>? _next;

    /// <summary>A position at or behind every change that was acknowledged before the call.</summary>
    public Task<WatchPosition> AskAsync()
    {
        lock (_lock)
        {
            if (_next is not null)
            {
                return _next;
            }

            if (_running is { IsCompleted: false } running)
            {
                return _next = connection.Start(() => AskAfterAsync(running));
            }

            return _running = connection.Start(AskAllAsync);
        }
    }

    private async Task<WatchPosition> AskAfterAsync(Task<WatchPosition> running)
    {
        try
        {
            await running.ConfigureAwait(connection.CapturesContext);
        }
        catch (Exception failure) when (failure is KahunaException or ObjectDisposedException)
        {
            // That was another round's.
        }

        lock (_lock)
        {
            _running = _next;
            _next = null;
        }

        return await AskAllAsync().ConfigureAwait(connection.CapturesContext);
    }

    private async Task<WatchPosition> AskAllAsync()
    {
        int partitions = await connection.PartitionsAsync(CancellationToken.None)
            .ConfigureAwait(connection.CapturesContext);
        RangeReply[] replies = await Task.WhenAll(Enumerable.Range(0, partitions).Select(AskAsync))
            .ConfigureAwait(connection.CapturesContext);
        return PositionOf(durability, replies);
    }

    /// <summary>The position of replies of all partitions.</summary>
    /// <exception cref="KahunaException">A server does not know positions.</exception>
    public static WatchPosition PositionOf(Durability durability, RangeReply[] replies)
    {
        ChangePoint[] points = new ChangePoint[replies.Length];
        for (int i = 0; i < points.Length; i++)
        {
            points[i] = replies[i].Point ?? throw OperationErrors.UnknownDescription("a position");
        }

        Array.Sort(points, static (left, right) => left.Group.CompareTo(right.Group));
        return new WatchPosition(replies[0].Cluster, durability, points);
    }

    /// <summary>A read of no keys.</summary>
    private async Task<RangeReply> AskAsync(int partition)
    {
        Operation<RangeReply> operation = Operation<RangeReply>.Rent();
        operation.Request.Begin(CommandKind.KeyRange, durability, "");
        operation.Request.SetRange(partition, [], RangeRequest.Options(1, RangeFlags.KeysOnly));
        operation.Request.AddFlag(CommandFlags.Positioned, true);
        return await connection.Run(operation, CancellationToken.None).ConfigureAwait(connection.CapturesContext);
    }
}
