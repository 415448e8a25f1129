using Microsoft.Extensions.Logging;

namespace Kahuna.Client.Connection;

/// <summary>
/// Wraps the application's logger so that its failures do not affect the client; the log line is lost. Owned by the
/// client; any thread.
/// </summary>
internal sealed class QuietLogger(ILogger inner) : ILogger
{
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
            inner.Log(logLevel, eventId, state, exception, formatter);
        }
        catch (Exception)
        {
            // The failure is the application's own, and nothing here can report it.
        }
    }
}
