using Kahuna.Server.Primitives;
using Kahuna.Server.State.Locks;

namespace Kahuna.Tests.State.Locks;

/// <summary>The queue of a lock as people see it.</summary>
public sealed class LockQueueTests
{
    private readonly LockDriver _locks = new();

    [Fact]
    public void It_has_those_who_wait_in_their_order_and_no_more_than_are_asked_for()
    {
        const int Waiting = 10;
        const int Asked = 3;
        _locks.Acquire("l", "holder", leaseMs: 600_000);
        for (int i = 0; i < Waiting; i++)
        {
            _locks.Acquire("l", $"waiter {i}", waitMs: 60_000 + i);
        }

        LockRows rows = _locks.Machine.Locks.Rows;
        LockQueue queue = rows.QueueOf("l"u8, Asked, new ClusterTime(_locks.Now + 10));
        Assert.Equal((1, Waiting), (queue.Holders, queue.Waiters));
        Assert.Equal(["waiter 0", "waiter 1", "waiter 2"], queue.First.Select(static waiter => waiter.Owner));
        Assert.Equal([59_990L, 59_991, 59_992], queue.First.Select(static waiter => waiter.LeftMs));
        Assert.All(queue.First, static waiter => Assert.Equal(LockMode.Exclusive, waiter.Mode));
        Assert.Equal(queue.First.OrderBy(static waiter => waiter.Token.Value), queue.First);
        Assert.Equal(0, rows.QueueOf("l"u8, 1, new ClusterTime(_locks.Now + 100_000)).First[0].LeftMs);
        Assert.Equal(LockQueue.Empty, rows.QueueOf("other"u8, Asked, new ClusterTime(_locks.Now)));
    }
}
