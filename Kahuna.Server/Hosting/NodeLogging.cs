using Kahuna.Server.Api.Calls;
using Kahuna.Server.Hosting.Options;
using Microsoft.Extensions.Logging.Console;

namespace Kahuna.Server.Hosting;

/// <summary>
/// Configures the log output: one line per event to standard error, with the time in UTC. Standard output stays free
/// for the program's own text. Stateless.
/// </summary>
internal static class NodeLogging
{
    private const string TimestampFormat = "yyyy-MM-ddTHH:mm:ss.fffZ";

    /// <summary>
    /// Logs events of <paramref name="level"/> and above. The web server logs only warnings and errors. The gRPC
    /// package logs nothing, because each bad request would be a line with a stack trace; <see cref="CallLog"/> has
    /// what matters.
    /// </summary>
    public static ThrottledLoggers Create(LogLevel level, LogFormat format)
    {
        ILoggerFactory console = LoggerFactory.Create(logging =>
        {
            logging.SetMinimumLevel(level).AddFilter("Microsoft", LogLevel.Warning).AddFilter("Grpc", LogLevel.None);
            logging.Services.Configure<ConsoleLoggerOptions>(
                options => options.LogToStandardErrorThreshold = LogLevel.Trace);
            if (format == LogFormat.Json)
            {
                logging.AddJsonConsole(json => (json.TimestampFormat, json.UseUtcTimestamp) = (TimestampFormat, true));
            }
            else
            {
                logging.AddSimpleConsole(text =>
                    (text.SingleLine, text.TimestampFormat, text.UseUtcTimestamp) =
                        (true, TimestampFormat + " ", true));
            }
        });
        return new ThrottledLoggers(console, TimeProvider.System);
    }
}
