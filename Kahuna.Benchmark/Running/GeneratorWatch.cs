using System.Globalization;
using Kahuna.Benchmark.Pacing;
using Kahuna.Benchmark.Recording;
using Kahuna.Benchmark.Timing;

namespace Kahuna.Benchmark.Running;

/// <summary>
/// Watches this process during the measurement: CPU, garbage collection, and how late a thread wakes that does nothing
/// but sleep. Has a thread of its own; owned by the load.
/// </summary>
internal sealed class GeneratorWatch : IDisposable
{
    /// <summary>200 wake-ups a second: enough to meet a pause of 5 ms, too few to cost anything.</summary>
    private static readonly long s_interval = Ticks.From(TimeSpan.FromMilliseconds(5));

    private readonly LoadWindow _window;
    private readonly LatencyHistogram _wakeLag = new();
    private readonly Thread _thread;
    private volatile bool _isStopped;
    private Reading _from;
    private Reading _to;
    private double _pauseMaxMs;

    public GeneratorWatch(LoadWindow window)
    {
        _window = window;
        _thread = new Thread(Run) { IsBackground = true, Name = "kahuna-bench watch" };
        _thread.Start();
    }

    /// <summary>Ends the watch and returns what it saw.</summary>
    public GeneratorUse Stop()
    {
        _isStopped = true;
        _thread.Join();
        double seconds = Ticks.ToSeconds(_to.Time - _from.Time);
        if (seconds <= 0)
        {
            return new GeneratorUse();
        }

        long machineTotal = _to.MachineTotal - _from.MachineTotal;
        return new GeneratorUse
        {
            ProcessCpuPct = 100 * (_to.ProcessCpu - _from.ProcessCpu).TotalSeconds / seconds,
            MachineCpuPct = machineTotal > 0 ? 100.0 * (_to.MachineBusy - _from.MachineBusy) / machineTotal : null,
            Collections = _to.Collections - _from.Collections,
            PauseTotalMs = (_to.Pauses - _from.Pauses).TotalMilliseconds,
            PauseMaxMs = _pauseMaxMs,
            AllocatedBytes = _to.Allocated - _from.Allocated,
            WakeLagP99Ms = _wakeLag.ValueAtPercentile(99) / 1000.0,
            WakeLagMaxMs = _wakeLag.Max / 1000.0,
            Seconds = seconds,
        };
    }

    public void Dispose() => _isStopped = true;

    private void Run()
    {
        PreciseSleep.PrepareThread();
        PreciseSleepUntilMeasurement();
        _from = Reading.Take();
        int collections = _from.Collections;
        while (!_isStopped && Ticks.Now < _window.End)
        {
            long due = Ticks.Now + s_interval;
            PreciseSleep.Until(due);
            _wakeLag.Record(Ticks.ToMicroseconds(Ticks.Now - due));
            int now = GC.CollectionCount(0);
            if (now != collections)
            {
                collections = now;
                NotePauses();
            }
        }

        _to = Reading.Take();
    }

    private void PreciseSleepUntilMeasurement()
    {
        while (!_isStopped && Ticks.Now < _window.MeasureFrom && Ticks.Now < _window.End)
        {
            PreciseSleep.Until(Math.Min(_window.MeasureFrom, Ticks.Now + s_interval));
        }
    }

    private void NotePauses()
    {
        GCMemoryInfo last = GC.GetGCMemoryInfo(GCKind.Any);
        if (last.Index <= _from.LastCollection)
        {
            // The collection that was counted still runs in the background; this is the one before the measurement.
            return;
        }

        foreach (TimeSpan pause in last.PauseDurations)
        {
            _pauseMaxMs = Math.Max(_pauseMaxMs, pause.TotalMilliseconds);
        }
    }

    /// <summary>The counters of the process and of the machine at one moment.</summary>
    private readonly record struct Reading(
        long Time,
        TimeSpan ProcessCpu,
        TimeSpan Pauses,
        int Collections,
        long LastCollection,
        long Allocated,
        long MachineBusy,
        long MachineTotal)
    {
        public static Reading Take()
        {
            (long busy, long total) = ReadMachine();
            return new Reading(
                Ticks.Now,
                ProcessTime(),
                GC.GetTotalPauseDuration(),
                GC.CollectionCount(0),
                GC.GetGCMemoryInfo(GCKind.Any).Index,
                GC.GetTotalAllocatedBytes(),
                busy,
                total);
        }

        private static TimeSpan ProcessTime()
        {
            using System.Diagnostics.Process process = System.Diagnostics.Process.GetCurrentProcess();
            return process.TotalProcessorTime;
        }

        /// <summary>Reads the first line of /proc/stat; zeros where there is none.</summary>
        private static (long Busy, long Total) ReadMachine()
        {
            if (!OperatingSystem.IsLinux())
            {
                return (0, 0);
            }

            try
            {
                string line = File.ReadLines("/proc/stat").First();
                long[] fields =
                [
                    .. line
                        .Split(' ', StringSplitOptions.RemoveEmptyEntries)
                        .Skip(1)
                        .Select(field => long.Parse(field, CultureInfo.InvariantCulture)),
                ];

                // user nice system idle iowait irq softirq steal: guest time is part of user time.
                long total = fields.Take(8).Sum();
                return (total - fields[3] - fields[4], total);
            }
            catch (Exception failure) when (
                failure is IOException
                    or UnauthorizedAccessException
                    or FormatException
                    or InvalidOperationException
                    or IndexOutOfRangeException)
            {
                return (0, 0);
            }
        }
    }
}
