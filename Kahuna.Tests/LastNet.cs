namespace Kahuna.Tests;

/// <summary>The longest wait for what must come. It ends a test that hangs, and says nothing about speed: a pass never waits for it. Stateless.</summary>
internal static class LastNet
{
    public static readonly TimeSpan Span = TimeSpan.FromMinutes(10);
}
