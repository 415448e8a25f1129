using Kahuna.Server.Transport;

namespace Kahuna.Server.Hosting;

/// <summary>
/// Keeps the log readable while clients misbehave: each event of the HTTP server and of the gRPC endpoint is written once in an interval, with the number
/// of lines that were left out. What the node itself has to say passes unchanged. Owns the factory below; any thread.
/// </summary>
internal sealed class ThrottledLoggers(ILoggerFactory inner, TimeProvider time) : ILoggerFactory
{
    /// <summary>How often the same event is written at most.</summary>
    public static readonly TimeSpan Interval = TimeSpan.FromMinutes(1);

    /// <summary>Categories whose events a client can bring about as often as it likes.</summary>
    private static readonly string[] s_clientDriven = ["Microsoft.", "Kahuna.Grpc"];

    private volatile bool _isStarting;

    /// <summary>While the HTTP server starts it is silent: an exception says why it could not, and its receiver writes one line.</summary>
    public bool IsStarting { get => _isStarting; set => _isStarting = value; }

    public ILogger CreateLogger(string categoryName)
    {
        ILogger logger = inner.CreateLogger(categoryName);
        return s_clientDriven.Any(prefix => categoryName.StartsWith(prefix, StringComparison.Ordinal)) ? new Throttled(this, logger, new LogThrottle(time, Interval)) : logger;
    }

    public void AddProvider(ILoggerProvider provider) => inner.AddProvider(provider);

    public void Dispose() => inner.Dispose();

    /// <summary>The events of one category.</summary>
    private sealed class Throttled(ThrottledLoggers owner, ILogger logger, LogThrottle throttle) : ILogger
    {
        public IDisposable? BeginScope<TState>(TState state)
            where TState : notnull => logger.BeginScope(state);

        public bool IsEnabled(LogLevel logLevel) => !owner.IsStarting && logger.IsEnabled(logLevel);

        public void Log<TState>(LogLevel logLevel, EventId eventId, TState state, Exception? exception, Func<TState, Exception?, string> formatter)
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
