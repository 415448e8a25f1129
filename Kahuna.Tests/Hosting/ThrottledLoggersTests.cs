using Kahuna.Server.Hosting;
using Kahuna.Tests.Transport;
using Microsoft.Extensions.Logging;

namespace Kahuna.Tests.Hosting;

/// <summary>A flood of connections does not become a flood of lines.</summary>
public sealed class ThrottledLoggersTests
{
    [Theory]
    [InlineData("Microsoft.AspNetCore.Server.Kestrel.Http2")]
    [InlineData("Kahuna.Grpc")]
    [InlineData("Kahuna.Transactions")]
    public void Events_that_clients_bring_about_are_written_once_a_minute(string category)
    {
        LogRecorder lines = new();
        SteppedTime time = new();
        using ThrottledLoggers loggers = new(lines, time);
        ILogger logger = loggers.CreateLogger(category);
        for (int i = 0; i < 1000; i++)
        {
            Write(logger, new EventId(37, "Flood"));
        }

        Write(logger, new EventId(38, "Other"));
        Assert.Equal(["Flood", "Other"], lines.Lines);

        time.Now += ThrottledLoggers.Interval;
        Write(logger, new EventId(37, "Flood"));
        Assert.Equal(4, lines.Lines.Count);
        Assert.Contains("999", lines.Lines.Last(), StringComparison.Ordinal);
    }

    [Fact]
    public void Lines_of_the_node_itself_are_all_written()
    {
        LogRecorder lines = new();
        using ThrottledLoggers loggers = new(lines, new SteppedTime());
        ILogger logger = loggers.CreateLogger("Kahuna.Node");
        for (int i = 0; i < 10; i++)
        {
            Write(logger, new EventId(1, "Event"));
        }

        Assert.Equal(10, lines.Lines.Count);
    }

    private static void Write(ILogger logger, EventId id) =>
        logger.Log(LogLevel.Critical, id, id, null, static (id, _) => id.Name!);
}
