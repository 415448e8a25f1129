using Microsoft.Extensions.Logging;

namespace Kahuna.Tests.Simulation.Nodes;

/// <summary>
/// Hears of transactions that a node could not end. That is to be expected while faults last; an exception is a bug.
/// Owned by one life of a node.
/// </summary>
internal sealed class SettlingEvents(SimNode node) : ILogger
{
    public IDisposable? BeginScope<TState>(TState state)
        where TState : notnull => null;

    public bool IsEnabled(LogLevel logLevel) => logLevel >= LogLevel.Error;

    public void Log<TState>(
        LogLevel logLevel,
        EventId eventId,
        TState state,
        Exception? exception,
        Func<TState, Exception?, string> formatter)
    {
        if (IsEnabled(logLevel))
        {
            node.Break($"{formatter(state, exception)} {exception}");
        }
    }
}
