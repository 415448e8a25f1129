using Kahuna.Wire;

namespace Kahuna.Tests;

/// <summary>
/// Longest waits for what must come. They end a test that hangs, and say nothing about speed: a pass never waits for
/// them. Stateless.
/// </summary>
internal static class LastNet
{
    /// <summary>The longest that a client's call may take.</summary>
    public static readonly TimeSpan Call = TimeSpan.FromMilliseconds(Limits.CommandWaitMsMax);

    /// <summary>
    /// The longest wait for what a planted bug keeps from coming, and what else takes a second at most. The test then
    /// fails by itself, instead of being given up.
    /// </summary>
    public static readonly TimeSpan Minute = TimeSpan.FromMinutes(1);

    /// <summary>The longest wait of a test.</summary>
    public static readonly TimeSpan Span = TimeSpan.FromMinutes(20);
}
