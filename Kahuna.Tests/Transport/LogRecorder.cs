using System.Collections.Concurrent;
using Microsoft.Extensions.Logging;

namespace Kahuna.Tests.Transport;

/// <summary>Keeps log lines and lets a test wait for one. Any thread.</summary>
internal sealed class LogRecorder : ILoggerFactory, ILogger
{
    public ConcurrentQueue<string> Lines { get; } = new();

    /// <summary>Lines of this level and above are kept.</summary>
    public LogLevel Level { get; init; }

    public void AddProvider(ILoggerProvider provider)
    {
    }

    public ILogger CreateLogger(string categoryName) => this;

    public IDisposable? BeginScope<TState>(TState state)
        where TState : notnull => null;

    public bool IsEnabled(LogLevel logLevel) => logLevel >= Level;

    public void Log<TState>(
        LogLevel logLevel,
        EventId eventId,
        TState state,
        Exception? exception,
        Func<TState, Exception?, string> formatter)
    {
        if (IsEnabled(logLevel))
        {
            Lines.Enqueue(formatter(state, exception));
        }
    }

    public void Dispose()
    {
    }

    public int Count(string part) => Lines.Count(line => line.Contains(part, StringComparison.Ordinal));

    public Task WaitFor(string part) => WaitFor(part, LastNet.Span);

    /// <summary>As above, with another limit than the last net.</summary>
    public async Task WaitFor(string part, TimeSpan longest)
    {
        using CancellationTokenSource limit = new(longest);
        while (Count(part) == 0)
        {
            Assert.False(limit.IsCancellationRequested, $"No line with '{part}' in:\n{string.Join('\n', Lines)}");
            await Task.Yield();
        }
    }
}
