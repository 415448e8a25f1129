using Kahuna.Server.Access;
using Kahuna.Server.Partitions.Loops;
using Kahuna.Server.State.Meta;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.Cluster;

/// <summary>
/// Changes the records about who may do what through the meta group: asks until this node has applied the change, or
/// another one in its place. Any thread. Continuations run in the caller's context: any thread in a server, the run's
/// queue in the simulator.
/// </summary>
/// <param name="access">The records as this node knows them.</param>
/// <param name="ask">Passes a command on to the meta group; it may be lost.</param>
/// <param name="newId">A random id for each change.</param>
/// <param name="time">Measures the waits.</param>
internal sealed class AccessLedger(
    AccessState access, Action<MetaCommand> ask, Func<AccessChangeId> newId, TimeProvider time) : IAccessLedger
{
    /// <summary>How long a change is asked for.</summary>
    internal static readonly TimeSpan Patience = TimeSpan.FromSeconds(10);

    /// <summary>The time after which it is asked for again.</summary>
    internal static readonly TimeSpan Interval = TimeSpan.FromMilliseconds(300);

    /// <summary>
    /// From now on the records are what this node has applied of the meta group, and are relied on while it has heard
    /// of everything that was committed up to a moment ago.
    /// </summary>
    public static void Follow(AccessState access, ClusterView view, LoopSet loops)
    {
        access.IsFresh = () => loops.Now - view.MetaCaughtUpAt <= AccessGate.FreshMs;
        access.Quotas.Usage = account =>
        {
            (long keys, long bytes) = loops.UsageOf(account);
            return new UserUsage(keys, bytes);
        };
        view.AccessChanged += access.Publish;
        access.Publish(view.Access);
    }

    /// <inheritdoc/>
    public AccessBook Book => access.Book;

    /// <inheritdoc/>
    public async Task<AccessCommit> ChangeAsync(ulong version, IReadOnlyList<AccessRow> rows, CancellationToken ct)
    {
        AccessRows before = access.Rows;
        if (before.Version != version)
        {
            return AccessCommit.Conflict;
        }

        if (AccessTable.BytesAfter(before, rows) > AccessTable.BytesMax)
        {
            return AccessCommit.Full;
        }

        AccessChangeId id = newId();
        MetaCommand command = new(CommandKind.AccessChange)
        {
            Incarnation = id.High,
            Nonce = id.Low,
            Number = version,
            Rows = AccessRowList.Write(rows),
        };
        TaskCompletionSource changed = NewWait();
        void Wake() => Volatile.Read(ref changed).TrySetResult();
        using IDisposable watch = access.Watch(Wake);
        await using ITimer again = time.CreateTimer(
            static wake => ((Action)wake!)(), (Action)Wake, Timeout.InfiniteTimeSpan, Timeout.InfiniteTimeSpan);
        await using CancellationTokenRegistration canceled = ct.UnsafeRegister(
            static wake => ((Action)wake!)(), (Action)Wake);
        long began = time.GetTimestamp();
        while (true)
        {
            Task wait = changed.Task;
            if (EndOf(access.Rows, version, id) is { } end)
            {
                return end;
            }

            if (time.GetElapsedTime(began) >= Patience)
            {
                return AccessCommit.Unknown;
            }

            again.Change(Interval, Timeout.InfiniteTimeSpan);
            ask(command);
            await wait;
            Volatile.Write(ref changed, NewWait());
            ct.ThrowIfCancellationRequested();
        }
    }

    private static TaskCompletionSource NewWait() => new(TaskCreationOptions.RunContinuationsAsynchronously);

    /// <summary>What became of a change; null: nothing yet.</summary>
    private static AccessCommit? EndOf(AccessRows rows, ulong version, AccessChangeId id)
    {
        if (rows.Version == version)
        {
            return null;
        }

        // The newest id is that of the newest version.
        long at = (long)rows.Recent.Count - 1 - (long)(rows.Version - version - 1);
        return at < 0 ? AccessCommit.Unknown
            : rows.Recent[(int)at] == id ? AccessCommit.Applied
            : AccessCommit.Conflict;
    }
}
