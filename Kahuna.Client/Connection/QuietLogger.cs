using Microsoft.Extensions.Logging;

namespace Kahuna.Client.Connection;

/// <summary>
/// Wraps the application's logger. A failure of it does not affect the client; the log line is lost. A line is written
/// once a minute, and of an event at most ten different ones; what was left out is counted in a later line. Owned by
/// the client; any thread.
/// </summary>
/// <param name="inner">The application's logger.</param>
/// <param name="time">Measures the minute.</param>
internal sealed class QuietLogger(ILogger inner, TimeProvider time) : ILogger
{
    /// <summary>How long an equal line is left out.</summary>
    public static readonly TimeSpan Interval = TimeSpan.FromMinutes(1);

    /// <summary>Lines of one event within the interval.</summary>
    public const int LinesMax = 10;

    private readonly Lock _lock = new();
    private readonly Dictionary<int, Lines> _events = [];

    /// <inheritdoc/>
    public IDisposable? BeginScope<TState>(TState state)
        where TState : notnull => null;

    /// <inheritdoc/>
    public bool IsEnabled(LogLevel logLevel)
    {
        try
        {
            return inner.IsEnabled(logLevel);
        }
        catch (Exception)
        {
            return false;
        }
    }

    /// <inheritdoc/>
    public void Log<TState>(
        LogLevel logLevel,
        EventId eventId,
        TState state,
        Exception? exception,
        Func<TState, Exception?, string> formatter)
    {
        try
        {
            if (inner.IsEnabled(logLevel) && Allows(eventId.Id, formatter(state, exception), out int leftOut))
            {
                inner.Log(logLevel, eventId, state, exception, formatter);
                if (leftOut > 0)
                {
                    ConnectionLog.LeftOut(inner, leftOut, eventId.Id);
                }
            }
        }
        catch (Exception)
        {
            // The failure is the application's own, and nothing here can report it.
        }
    }

    /// <summary>Whether a line may be written, and how many of its event were left out since the last one.</summary>
    private bool Allows(int id, string text, out int leftOut)
    {
        long now = time.GetTimestamp();
        lock (_lock)
        {
            if (!_events.TryGetValue(id, out Lines? lines))
            {
                _events[id] = lines = new Lines();
            }

            lines.Written.RemoveAll(line => time.GetElapsedTime(line.At, now) >= Interval);
            if (lines.Written.Count >= LinesMax || lines.Written.Exists(line => line.Text == text))
            {
                lines.LeftOut++;
                leftOut = 0;
                return false;
            }

            lines.Written.Add((text, now));
            (leftOut, lines.LeftOut) = (lines.LeftOut, 0);
            return true;
        }
    }

    /// <summary>The lines of one event in the last minute, at most <see cref="LinesMax"/>.</summary>
    private sealed class Lines
    {
        public List<(string Text, long At)> Written { get; } = [];

        public int LeftOut { get; set; }
    }
}
