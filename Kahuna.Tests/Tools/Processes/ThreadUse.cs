namespace Kahuna.Tests.Tools.Processes;

/// <summary>Processor time of threads in ticks, and how often they gave the processor back. Immutable.</summary>
internal readonly record struct ThreadUse(long User, long System, long Switches)
{
    public long Ticks => User + System;

    public static ThreadUse operator +(ThreadUse x, ThreadUse y) =>
        new(x.User + y.User, x.System + y.System, x.Switches + y.Switches);

    public static ThreadUse operator -(ThreadUse x, ThreadUse y) =>
        new(x.User - y.User, x.System - y.System, x.Switches - y.Switches);
}
