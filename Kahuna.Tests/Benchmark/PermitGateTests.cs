using Kahuna.Benchmark.Pacing;

namespace Kahuna.Tests.Benchmark;

/// <summary>The hand-over from the pacing thread to the consumers.</summary>
public sealed class PermitGateTests
{
    [Fact]
    public async Task Hands_out_every_number_once_and_in_order()
    {
        PermitGate gate = new(4);
        List<long> taken = [];
        Task[] consumers = [.. Enumerable.Range(0, 4).Select(_ => Task.Run(async () =>
        {
            PermitWaiter waiter = new();
            long number;
            while ((number = await gate.ClaimAsync(waiter)) != PermitGate.Finished)
            {
                lock (taken)
                {
                    taken.Add(number);
                }
            }
        }))];
        for (int upTo = 0; upTo <= 10_000; upTo += 7)
        {
            gate.Release(upTo);
        }

        gate.Release(10_000);
        gate.Close();
        await Task.WhenAll(consumers);
        Assert.Equal(Enumerable.Range(0, 10_000).Select(number => (long)number), taken.Order());
    }

    [Fact]
    public async Task Close_lets_the_backlog_be_taken_first()
    {
        PermitGate gate = new(1);
        gate.Release(2);
        gate.Close();
        PermitWaiter waiter = new();
        Assert.Equal(2, gate.Backlog);
        Assert.Equal(0, await gate.ClaimAsync(waiter));
        Assert.Equal(1, await gate.ClaimAsync(waiter));
        Assert.Equal(PermitGate.Finished, await gate.ClaimAsync(waiter));
    }

    [Fact]
    public async Task Abandon_tells_what_was_left_and_ends_waiting_consumers()
    {
        PermitGate gate = new(2);
        ValueTask<long> waiting = gate.ClaimAsync(new PermitWaiter());
        gate.Release(1);
        Assert.Equal(0, await waiting);
        ValueTask<long> idle = gate.ClaimAsync(new PermitWaiter());
        Assert.Equal(0, gate.Abandon());
        Assert.Equal(PermitGate.Finished, await idle);

        PermitGate full = new(1);
        full.Release(5);
        Assert.Equal(5, full.Abandon());
        Assert.Equal(PermitGate.Finished, await full.ClaimAsync(new PermitWaiter()));
    }
}
