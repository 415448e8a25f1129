using Kahuna.Benchmark.Recording;
using Kahuna.Benchmark.Timing;

namespace Kahuna.Benchmark.Pacing;

/// <summary>
/// The dedicated thread of an open loop: makes each request due at its exact time, whatever the target does. When it
/// wakes late it releases all that is due, and the delay counts into the latency of those requests and into
/// <see cref="Lag"/>. Owned by the run.
/// </summary>
internal sealed class Pacer
{
    /// <summary>Longest sleep, so that a stop is noticed soon.</summary>
    private static readonly long s_sleepMax = Ticks.From(TimeSpan.FromMilliseconds(20));

    private readonly PermitGate _gate;
    private readonly PaceSchedule _schedule;
    private readonly LoadWindow _window;
    private readonly Thread _thread;

    public Pacer(PermitGate gate, PaceSchedule schedule, LoadWindow window)
    {
        _gate = gate;
        _schedule = schedule;
        _window = window;
        _thread =
            new Thread(Run) { IsBackground = true, Name = "kahuna-bench pacer", Priority = ThreadPriority.AboveNormal };
    }

    /// <summary>How late this thread was, in microseconds; complete after <see cref="Join"/>.</summary>
    public LatencyHistogram Lag { get; } = new();

    /// <summary>Requests of the measurement that were made due; complete after <see cref="Join"/>.</summary>
    public long ReleasedInMeasurement { get; private set; }

    public void Start() => _thread.Start();

    /// <summary>Waits for the thread, which ends by itself at the end of the window.</summary>
    public void Join() => _thread.Join();

    private void Run()
    {
        PreciseSleep.PrepareThread();
        long beforeMeasurement = _schedule.DueCount(_window.MeasureFrom - 1);
        long released = 0;
        while (true)
        {
            long now = Ticks.Now;
            long end = _window.End;

            // A request that is due exactly at the end starts outside of the window.
            long due = _schedule.DueCount(Math.Min(now, end - 1));
            if (due > released)
            {
                if (released >= beforeMeasurement)
                {
                    Lag.Record(Ticks.ToMicroseconds(now - _schedule.DueAt(released)));
                }

                _gate.Release(due);
                released = due;
            }

            if (now >= end)
            {
                break;
            }

            PreciseSleep.Until(Math.Min(Math.Min(_schedule.DueAt(released), end), Ticks.Now + s_sleepMax));
        }

        ReleasedInMeasurement = Math.Max(0, released - beforeMeasurement);
        _gate.Close();
    }
}
