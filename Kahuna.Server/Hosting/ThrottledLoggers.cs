using Kahuna.Server.Cluster;
using Kahuna.Server.Transport;

namespace Kahuna.Server.Hosting;

/// <summary>
/// Throttles log events that clients can cause: each event of the HTTP server, of the gRPC endpoint and of abandoned
/// transactions is written once per interval, with the number of suppressed lines. The node's own events pass
/// unchanged. Owns the factory below; any thread.
/// </summary>
internal sealed class ThrottledLoggers(ILoggerFactory inner, TimeProvider time) : ILoggerFactory
{
    /// <summary>Shortest time between two lines of the same event.</summary>
    public static readonly TimeSpan Interval = TimeSpan.FromMinutes(1);

    /// <summary>Categories whose events a client can cause at any rate.</summary>
    private static readonly string[] s_clientDriven = ["Microsoft.", "Kahuna.Grpc", SettlingLog.Category];

    private volatile bool _isStarting;

    /// <summary>
    /// Silences the HTTP server while it starts: if it fails, an exception carries the reason, and its receiver writes
    /// one line.
    /// </summary>
    public bool IsStarting { get => _isStarting; set => _isStarting = value; }

    public ILogger CreateLogger(string categoryName)
    {
        ILogger logger = inner.CreateLogger(categoryName);
        return s_clientDriven.Any(prefix => categoryName.StartsWith(prefix, StringComparison.Ordinal))
            ? new Throttled(this, logger, new LogThrottle(time, Interval))
            : logger;
    }

    public void AddProvider(ILoggerProvider provider) => inner.AddProvider(provider);

    public void Dispose() => inner.Dispose();

    /// <summary>The logger of one category.</summary>
    private sealed class Throttled(ThrottledLoggers owner, ILogger logger, LogThrottle throttle) : ILogger
    {
        public IDisposable? BeginScope<TState>(TState state)
            where TState : notnull => logger.BeginScope(state);

        public bool IsEnabled(LogLevel logLevel) => !owner.IsStarting && logger.IsEnabled(logLevel);

        public void Log<TState>(
            LogLevel logLevel,
            EventId eventId,
            TState state,
            Exception? exception,
            Func<TState, Exception?, string> formatter)
        {
            if (!IsEnabled(logLevel) || !throttle.Allows(eventId.Name ?? eventId.ToString(), out long leftOut))
            {
                return;
            }

            logger.Log(logLevel, eventId, state, exception, formatter);
            if (leftOut > 0)
            {
                logger.LinesLeftOut(leftOut);
            }
        }
    }
}
