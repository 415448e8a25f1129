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
        Assert.Equal(4_000, clock.At(73_000));
        Assert.Equal(1_000, clock.At(70_000));
        Assert.Equal(0, clock.At(69_000));
    }

    [Fact]
    public void The_latest_bound_counts_whatever_the_order()
    {
        LeaseClock clock = Clock();
        clock.Heard(1_000, 70_000);
        clock.Heard(2_000, 71_500);
        Assert.Equal(4_000, clock.At(73_000));
        clock.Heard(5_000, 71_500);
        Assert.Equal(6_500, clock.At(73_000));
        clock.Heard(5_100, 72_000);
        Assert.Equal(6_500, clock.At(73_000));
    }

    [Fact]
    public void No_moment_is_put_later_than_it_comes_however_cluster_time_stands_still()
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

                // By now it may have come, and not much later; the bound may not be after the moment at which it really did.
                if (cluster >= end)
                {
                    Assert.True(clock.At(end) <= real);
                }

                reached.Add((end, real));
            }

            void Pass(int ms)
            {
                real += ms;
                cluster += random.Next(3) == 0 ? 0 : ms * random.NextDouble();
            }
        }
    }

    private LeaseClock Clock() => new(new ConnectionClock(_time));
}
