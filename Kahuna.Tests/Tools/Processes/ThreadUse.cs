namespace Kahuna.Tests.Tools.Processes;

/// <summary>
/// Processor time of threads in ticks, how often they gave the processor back, and how often it was taken from them.
/// Immutable.
/// </summary>
internal readonly record struct ThreadUse(long User, long System, long Switches, long Forced = 0)
{
    public long Ticks => User + System;

    public static ThreadUse operator +(ThreadUse x, ThreadUse y) =>
        new(x.User + y.User, x.System + y.System, x.Switches + y.Switches, x.Forced + y.Forced);

    public static ThreadUse operator -(ThreadUse x, ThreadUse y) =>
        new(x.User - y.User, x.System - y.System, x.Switches - y.Switches, x.Forced - y.Forced);
}
