namespace Kahuna.Tests.Hosting;

/// <summary>A clock that a test moves. Owned by a test.</summary>
internal sealed class SteppedTime : TimeProvider
{
    private static readonly DateTimeOffset s_start = new(2030, 1, 1, 0, 0, 0, TimeSpan.Zero);

    public TimeSpan Now { get; set; }

    public override long TimestampFrequency => TimeSpan.TicksPerSecond;

    public override long GetTimestamp() => Now.Ticks;

    public override DateTimeOffset GetUtcNow() => s_start + Now;
}
