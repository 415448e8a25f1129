namespace Kahuna.Tests.Hosting;

/// <summary>The real clock, moved. Owned by a test.</summary>
internal sealed class ShiftedTime(TimeSpan by) : TimeProvider
{
    public override DateTimeOffset GetUtcNow() => base.GetUtcNow() + by;
}
