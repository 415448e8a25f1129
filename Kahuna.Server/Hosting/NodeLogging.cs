using Microsoft.Extensions.Logging.Console;

namespace Kahuna.Server.Hosting;

/// <summary>Where a node's log lines go: one line each to standard error, with the time in UTC, so that standard output stays the program's own. Stateless.</summary>
internal static class NodeLogging
{
    /// <summary>Lines of <paramref name="level"/> and above; of the libraries below only warnings and worse.</summary>
    public static ILoggerFactory Create(LogLevel level) => LoggerFactory.Create(logging =>
    {
        logging.SetMinimumLevel(level).AddFilter("Microsoft", LogLevel.Warning);
        logging.Services.Configure<ConsoleLoggerOptions>(console => console.LogToStandardErrorThreshold = LogLevel.Trace);
        logging.AddSimpleConsole(console =>
        {
            console.SingleLine = true;
            console.TimestampFormat = "yyyy-MM-ddTHH:mm:ss.fffZ ";
            console.UseUtcTimestamp = true;
        });
    });
}
