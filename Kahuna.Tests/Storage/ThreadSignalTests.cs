using System.Diagnostics;
using Kahuna.Server.Storage;

namespace Kahuna.Tests.Storage;

/// <summary>A signal loses no wake, whichever kind it is.</summary>
public sealed class ThreadSignalTests
{
    private static readonly TimeSpan s_long = TimeSpan.FromMinutes(1);

    /// <summary>The kinds of this system.</summary>
    public static TheoryData<string> Kinds() =>
        [nameof(MonitorSignal), .. FutexSignal.IsAvailable ? new[] { nameof(FutexSignal) } : []];

    [Fact]
    public void Linux_has_the_cheap_kind() =>
        Assert.Equal(OperatingSystem.IsLinux(), ThreadSignal.New() is FutexSignal);

    [Theory]
    [MemberData(nameof(Kinds))]
    public void Sets_before_a_wait_count_once(string kind)
    {
        ThreadSignal signal = New(kind);
        signal.Set();
        signal.Set();
        Assert.True(signal.Wait(s_long));
        Assert.False(signal.Wait(TimeSpan.Zero));
    }

    [Theory]
    [MemberData(nameof(Kinds))]
    public void A_wait_ends_at_its_timeout_and_the_next_one_waits_again(string kind)
    {
        ThreadSignal signal = New(kind);
        long began = Stopwatch.GetTimestamp();
        Assert.False(signal.Wait(TimeSpan.FromMilliseconds(1_100)));
        Assert.True(Stopwatch.GetElapsedTime(began) > TimeSpan.FromSeconds(1));
        signal.Set();
        Assert.True(signal.Wait(TimeSpan.FromMilliseconds(1)));
    }

    [Theory]
    [MemberData(nameof(Kinds))]
    public void A_set_ends_the_wait_that_has_begun(string kind)
    {
        ThreadSignal signal = New(kind);
        bool wasSet = false;
        Thread waiter = new(() => wasSet = signal.Wait(TimeSpan.FromSeconds(20)));
        waiter.Start();

        // Long enough for the thread to wait. If it is not, the set is found by the wait that comes later.
        Thread.Sleep(200);
        signal.Set();
        waiter.Join();
        Assert.True(wasSet);
    }

    [Theory]
    [MemberData(nameof(Kinds))]
    public void No_set_is_lost_between_two_threads(string kind)
    {
        const int Rounds = 20_000;
        (ThreadSignal there, ThreadSignal back) = (New(kind), New(kind));
        bool isMissed = false;
        Thread other = new(() =>
        {
            for (int i = 0; i < Rounds && !isMissed; i++)
            {
                isMissed |= !there.Wait(s_long);
                back.Set();
            }
        });
        other.Start();
        for (int i = 0; i < Rounds && !isMissed; i++)
        {
            there.Set();
            isMissed |= !back.Wait(s_long);
        }

        other.Join();
        Assert.False(isMissed);
    }

    [Theory]
    [MemberData(nameof(Kinds))]
    public void Work_of_many_threads_is_all_seen(string kind)
    {
        const int Each = 50_000;
        ThreadSignal signal = New(kind);
        int given = 0;
        Thread[] threads =
        [
            .. Enumerable.Range(0, 3).Select(_ => new Thread(() =>
            {
                for (int i = 0; i < Each; i++)
                {
                    Interlocked.Increment(ref given);
                    signal.Set();
                }
            })),
        ];
        foreach (Thread thread in threads)
        {
            thread.Start();
        }

        while (Volatile.Read(ref given) < threads.Length * Each)
        {
            Assert.True(signal.Wait(s_long));
        }

        foreach (Thread thread in threads)
        {
            thread.Join();
        }
    }

    private static ThreadSignal New(string kind) =>
        kind == nameof(FutexSignal) ? new FutexSignal() : new MonitorSignal();
}
