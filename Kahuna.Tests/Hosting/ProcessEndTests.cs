using Kahuna.Server.Hosting;
using Microsoft.Extensions.Logging.Abstractions;

namespace Kahuna.Tests.Hosting;

/// <summary>What is left of an unexpected exception that ends the process.</summary>
public sealed class ProcessEndTests
{
    [Fact]
    public void Without_a_log_standard_error_gets_the_stack_trace()
    {
        Exception error = Assert.Throws<InvalidOperationException>(Fail);
        string words = new ProcessEnd(loggers: null).Message("a thread", error);
        Assert.StartsWith(
            "kahuna-server: the node stops: unexpected error in a thread: System.InvalidOperationException: broken",
            words,
            StringComparison.Ordinal);
        Assert.Contains(nameof(Fail), words, StringComparison.Ordinal);
    }

    [Fact]
    public void With_a_log_which_has_the_stack_trace_standard_error_gets_one_line()
    {
        Exception error = Assert.Throws<InvalidOperationException>(Fail);
        Assert.Equal(
            "kahuna-server: the node stops: unexpected error in a tick: InvalidOperationException: broken",
            new ProcessEnd(NullLoggerFactory.Instance).Message("a tick", error));
    }

    private static void Fail() => throw new InvalidOperationException("broken");
}
