using Kahuna.Server.State.Meta;

namespace Kahuna.Server.Access;

/// <summary>
/// This node's copy of the records about who may do what, and the callers that have something open. Any thread.
/// </summary>
/// <param name="isRequired">Every caller has to say who it is; false: nothing is checked.</param>
/// <param name="time">The clock by which tokens expire.</param>
internal sealed class AccessState(bool isRequired, TimeProvider time)
{
    /// <summary>What is said when the records here may be old (<see cref="IsFresh"/>).</summary>
    public const string StaleSentence =
        "This node has not heard from the leader of the meta group for a second, so it does not know whether rights "
            + "have changed; nothing was done. Try again, or another node.";

    private readonly Lock _lock = new();
    private readonly HashSet<OpenCaller> _open = [];
    private AccessBook _book = AccessBook.Empty;
    private AccessRows _rows = AccessRows.Empty;

    /// <summary>Every caller has to say who it is.</summary>
    public bool IsRequired => isRequired;

    /// <summary>The newest records that this node knows.</summary>
    public AccessBook Book => Volatile.Read(ref _book);

    /// <summary>The records that <see cref="Book"/> is read from.</summary>
    public AccessRows Rows => Volatile.Read(ref _rows);

    /// <summary>The time by which tokens expire.</summary>
    public DateTimeOffset Now => time.GetUtcNow();

    /// <summary>What users with a quota have used on this node.</summary>
    public UserQuotas Quotas { get; } = new(time);

    /// <summary>
    /// Asked before rights are relied on: false when the records here may be older than a second, because the node does
    /// not hear from the leader of the meta group. Set once.
    /// </summary>
    public Func<bool> IsFresh { get; set; } = static () => true;

    /// <summary>Takes newer records, and tells the open callers that may do less or more.</summary>
    public void Publish(AccessRows rows)
    {
        lock (_lock)
        {
            if (rows.Version <= _rows.Version)
            {
                return;
            }

            AccessBook book = AccessBook.Read(rows);
            Volatile.Write(ref _book, book);
            Volatile.Write(ref _rows, rows);
            Quotas.Forget(book);
        }

        TellOpen();
    }

    /// <summary>Tells the open callers to look again: about once a second, for what ends by time.</summary>
    public void Tick() => TellOpen();

    /// <summary>
    /// Something of the caller is open: <paramref name="look"/> is called after each change of the records, and about
    /// once a second, on any thread; it must not block. Disposed: it is closed.
    /// </summary>
    public IDisposable Watch(Action look)
    {
        OpenCaller open = new(this, look);
        lock (_lock)
        {
            _open.Add(open);
        }

        return open;
    }

    private void TellOpen()
    {
        OpenCaller[] open;
        lock (_lock)
        {
            open = [.. _open];
        }

        foreach (OpenCaller caller in open)
        {
            caller.Look();
        }
    }

    private sealed class OpenCaller(AccessState access, Action look) : IDisposable
    {
        public void Look() => look();

        public void Dispose()
        {
            lock (access._lock)
            {
                access._open.Remove(this);
            }
        }
    }
}
