using System.Globalization;
using Kahuna.Client;
using Kahuna.Client.Connection;
using Kahuna.Client.Locks;

namespace Kahuna.Tests.Client;

/// <summary>A clock that goes on while the machine is suspended, and who looks at it.</summary>
public sealed class SuspendAwareTimeTests
{
    [Fact]
    public void It_counts_from_the_start_of_the_machine_suspensions_included()
    {
        if (!OperatingSystem.IsLinux())
        {
            Assert.Null(SuspendAwareTime.Instance);
            return;
        }

        SuspendAwareTime time = Assert.IsType<SuspendAwareTime>(SuspendAwareTime.Instance);
        double before = time.GetTimestamp() / (double)time.TimestampFrequency;

        // The kernel tells the same clock there, in hundredths of a second.
        double told = double.Parse(File.ReadAllText("/proc/uptime").Split(' ')[0], CultureInfo.InvariantCulture);
        double after = time.GetTimestamp() / (double)time.TimestampFrequency;
        Assert.InRange(told, before - 0.02, after + 0.02);
    }

    [Fact]
    public void A_client_of_the_network_uses_it_in_place_of_the_system_clock_and_keeps_any_other()
    {
        ManualTime other = new();
        KahunaClientOptions options = new();
        Assert.Same(
            SuspendAwareTime.Instance ?? TimeProvider.System, ConnectionPorts.ForNetwork(options.ToSettings()).Time);
        Assert.True(ConnectionPorts.ForNetwork(options.ToSettings()).HasThreads);
        options.TimeProvider = other;
        Assert.Same(other, ConnectionPorts.ForNetwork(options.ToSettings()).Time);
        Assert.False(ConnectionPorts.ForNetwork(options.ToSettings()).HasThreads);
    }

    [Fact]
    public void Who_waits_for_a_lease_to_end_notices_that_the_clock_went_on_during_a_suspension()
    {
        ManualTime time = new();
        ConnectionClock clock = new(time);
        using ManualResetEventSlim woken = new();
        using LeaseThread alarm = new(clock, woken.Set);
        alarm.Set(clock.After(TimeSpan.FromHours(1)));
        time.Jump(TimeSpan.FromHours(1));
        Assert.True(woken.Wait(Wait.Longest));
    }
}
