using Kahuna.Client.Connection;
using Kahuna.Client.Locks;

namespace Kahuna.Tests.Client;

public sealed class LeaseClockTests
{
    private readonly ManualTime _time = new();

    [Fact]
    public void Before_the_first_reply_everything_is_over()
    {
        Assert.Equal(long.MinValue, Clock().At(0));
        Assert.Equal(long.MinValue, Clock().At(long.MaxValue / 2_000_000));
    }

    [Fact]
    public void A_moment_is_as_far_from_the_request_as_from_what_the_reply_told()
    {
        LeaseClock clock = Clock();
        clock.Heard(sent: 1_000, clusterMs: 70_000);
        Assert.Equal(1_000 + 2_970, clock.At(73_000));
        Assert.Equal(1_000, clock.At(70_000));
        Assert.Equal(10, clock.At(69_000));
    }

    [Fact]
    public void The_latest_bound_counts_whatever_the_order()
    {
        LeaseClock clock = Clock();
        clock.Heard(1_000, 70_000);
        clock.Heard(2_000, 71_500);
        Assert.Equal(1_000 + 2_970, clock.At(73_000));
        clock.Heard(5_000, 71_500);
        Assert.Equal(5_000 + 1_485, clock.At(73_000));
        clock.Heard(5_100, 72_000);
        Assert.Equal(5_000 + 1_485, clock.At(73_000));
    }

    [Theory]
    [InlineData(1.01)]
    [InlineData(0.99)]
    [InlineData(1)]
    public void An_hour_of_clocks_that_differ_puts_no_moment_later_than_it_comes(double rate)
    {
        // Cluster time as a holder's clock sees it whose rate differs from the leader's.
        LeaseClock clock = Clock();
        for (long real = 0; real <= 3_600_000; real += 10_000)
        {
            clock.Heard(real, Cluster(real));
            foreach (long later in (long[])[1, 1_000, 30_000, 3_600_000])
            {
                Assert.InRange(clock.At(Cluster(real + later)), real, real + later);
            }
        }

        // Nor is a lease given away: what was heard last says how long it lasts, less what clocks may differ by.
        long left = clock.At(Cluster(3_630_000)) - 3_600_000;
        Assert.InRange(left, 30_000 * 0.97, 30_000);

        long Cluster(long real) => 70_000 + (long)(real * rate);
    }

    [Fact]
    public void No_moment_is_put_later_than_it_comes_however_cluster_time_stands_still_or_is_fast()
    {
        Random random = new(11);
        for (int run = 0; run < 200; run++)
        {
            LeaseClock clock = Clock();
            long real = random.Next(1_000_000);
            double cluster = random.Next(1_000_000);
            List<(long AtMs, long RealMs)> reached = [];
            for (int i = 0; i < 50; i++)
            {
                long sent = real;
                Pass(random.Next(50));
                long told = (long)cluster;
                Pass(random.Next(50));
                clock.Heard(sent, told);
                Pass(random.Next(500));
                long end = (long)cluster + 1;
                Pass(random.Next(10) + 1);

                // By now it may have come, and not much later; the bound may not be after the moment at which it really
                // did.
                if (cluster >= end)
                {
                    Assert.True(clock.At(end) <= real);
                }

                reached.Add((end, real));
            }

            void Pass(int ms)
            {
                real += ms;
                cluster += random.Next(3) switch { 0 => 0, 1 => ms * random.NextDouble(), _ => ms * 1.01 };
            }
        }
    }

    private LeaseClock Clock() => new(new ConnectionClock(_time));
}
