using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace Kahuna.Server.Storage;

/// <summary>
/// Wakes one waiting thread. Set by any thread; sets between two waits count once. A waiter blocks in the kernel at
/// once, without spinning. One thread waits at a time.
/// </summary>
internal abstract class ThreadSignal
{
    /// <summary>A signal of the kind that costs least on this system.</summary>
    public static ThreadSignal New() => FutexSignal.IsAvailable ? new FutexSignal() : new MonitorSignal();

    /// <summary>Ends the present wait, or the next one.</summary>
    public abstract void Set();

    /// <summary>Waits until it is set; false when it was not within the timeout.</summary>
    public abstract bool Wait(TimeSpan timeout);
}

/// <summary>The same everywhere.</summary>
internal sealed class MonitorSignal : ThreadSignal
{
    private readonly object _gate = new();
    private bool _isSet;
    private bool _isAwaited;

    public override void Set()
    {
        lock (_gate)
        {
            _isSet = true;
            if (_isAwaited)
            {
                Monitor.Pulse(_gate);
            }
        }
    }

    public override bool Wait(TimeSpan timeout)
    {
        lock (_gate)
        {
            if (!_isSet)
            {
                _isAwaited = true;
                Monitor.Wait(_gate, timeout);
                _isAwaited = false;
            }

            bool wasSet = _isSet;
            _isSet = false;
            return wasSet;
        }
    }
}

/// <summary>
/// One word that the kernel waits for (futex(2)): a wake and a wait are one system call each, and whoever wakes holds
/// no lock that the woken thread needs. With a monitor they were two to three each. Linux on x64 and arm64.
/// </summary>
internal sealed unsafe partial class FutexSignal : ThreadSignal
{
    private const int Idle = 0;
    private const int IsSet = 1;
    private const int Awaited = 2;

    private const int WaitPrivate = 128;
    private const int WakePrivate = 129;
    private const int NotThatValue = 11;
    private const int TimedOut = 110;

    /// <summary>The word is alone on its cache lines: 32 words before it and behind it.</summary>
    private const int Words = 65;

    private static readonly long s_call = RuntimeInformation.ProcessArchitecture == Architecture.X64 ? 202 : 98;

    private readonly int[] _words = GC.AllocateArray<int>(Words, pinned: true);
    private readonly int* _word;

    public FutexSignal() => _word = (int*)Unsafe.AsPointer(ref _words[Words / 2]);

    /// <summary>The system has the call, and lets this process use it.</summary>
    public static bool IsAvailable { get; } = CanWait();

    public override void Set()
    {
        if (Interlocked.Exchange(ref *_word, IsSet) == Awaited)
        {
            _ = Wake(s_call, _word, WakePrivate, 1);
        }
    }

    public override bool Wait(TimeSpan timeout)
    {
        if (Interlocked.CompareExchange(ref *_word, Awaited, Idle) == Idle)
        {
            TimeSpec span = new() { Seconds = timeout.Ticks / TimeSpan.TicksPerSecond };
            span.Nanoseconds = (timeout.Ticks - (span.Seconds * TimeSpan.TicksPerSecond)) * TimeSpan.NanosecondsPerTick;
            TimeSpec* limit = timeout == Timeout.InfiniteTimeSpan ? null : &span;

            // A signal of the operating system, or a wake without reason, ends the call early.
            while (Volatile.Read(ref *_word) == Awaited
                && (Sleep(s_call, _word, WaitPrivate, Awaited, limit) == 0
                    || Marshal.GetLastPInvokeError() != TimedOut))
            {
            }
        }

        return Interlocked.Exchange(ref *_word, Idle) == IsSet;
    }

    private static bool CanWait()
    {
        if (!OperatingSystem.IsLinux()
            || RuntimeInformation.ProcessArchitecture is not (Architecture.X64 or Architecture.Arm64))
        {
            return false;
        }

        int word = Idle;
        try
        {
            return Sleep(s_call, &word, WaitPrivate, Awaited, null) != 0
                && Marshal.GetLastPInvokeError() == NotThatValue;
        }
        catch (Exception missing) when (missing is DllNotFoundException or EntryPointNotFoundException)
        {
            return false;
        }
    }

    [LibraryImport("libc", EntryPoint = "syscall", SetLastError = true)]
    private static partial long Sleep(long call, int* word, int operation, int value, TimeSpec* timeout);

    /// <summary>Never blocks.</summary>
    [LibraryImport("libc", EntryPoint = "syscall")]
    [SuppressGCTransition]
    private static partial long Wake(long call, int* word, int operation, int count);

    [StructLayout(LayoutKind.Sequential)]
    private struct TimeSpec
    {
        public long Seconds;
        public long Nanoseconds;
    }
}
