using Kahuna.Server.Api.Calls;
using Kahuna.Server.Hosting.Options;
using Microsoft.Extensions.Logging.Console;

namespace Kahuna.Server.Hosting;

/// <summary>Where a node's log lines go: one line each to standard error, with the time in UTC, so that standard output stays the program's own. Stateless.</summary>
internal static class NodeLogging
{
    private const string TimestampFormat = "yyyy-MM-ddTHH:mm:ss.fffZ";

    /// <summary>Lines of <paramref name="level"/> and above; of the web server only warnings and worse, of the gRPC package nothing: each bad request would be a line with a stack trace, and <see cref="CallLog"/> has what matters.</summary>
    public static ThrottledLoggers Create(LogLevel level, LogFormat format)
    {
        ILoggerFactory console = LoggerFactory.Create(logging =>
        {
            logging.SetMinimumLevel(level).AddFilter("Microsoft", LogLevel.Warning).AddFilter("Grpc", LogLevel.None);
            logging.Services.Configure<ConsoleLoggerOptions>(options => options.LogToStandardErrorThreshold = LogLevel.Trace);
            if (format == LogFormat.Json)
            {
                logging.AddJsonConsole(json => (json.TimestampFormat, json.UseUtcTimestamp) = (TimestampFormat, true));
            }
            else
            {
                logging.AddSimpleConsole(text => (text.SingleLine, text.TimestampFormat, text.UseUtcTimestamp) = (true, TimestampFormat + " ", true));
            }
        });
        return new ThrottledLoggers(console, TimeProvider.System);
    }
}
