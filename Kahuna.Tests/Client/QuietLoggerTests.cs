using System.Collections.Concurrent;
using System.Reflection;
using Kahuna.Client;
using Kahuna.Client.Connection;
using Kahuna.Tests.Tidy;
using Microsoft.Extensions.Logging;

namespace Kahuna.Tests.Client;

/// <summary>The log of the SDK does not repeat itself, whatever goes wrong how often.</summary>
public sealed class QuietLoggerTests
{
    private static readonly Uri s_node = new("https://a:8082");

    private readonly ManualTime _time = new();
    private readonly Recorder _lines = new();
    private readonly QuietLogger _logger;

    public QuietLoggerTests() => _logger = new QuietLogger(_lines, _time);

    [Fact]
    public void An_equal_line_is_written_once_a_minute_and_those_left_out_are_counted()
    {
        for (int i = 0; i < 100; i++)
        {
            ConnectionLog.Lost(_logger, s_node, "reset");
        }

        Assert.Single(_lines.Written);
        _time.Advance(QuietLogger.Interval);
        ConnectionLog.Lost(_logger, s_node, "reset");
        Assert.Equal(
            [
                "The stream to https://a:8082/ ended: reset",
                "The stream to https://a:8082/ ended: reset",
                "99 lines of event 2 were left out since the last one",
            ],
            _lines.Written);
    }

    [Fact]
    public void Different_lines_of_an_event_are_limited_and_other_events_are_not_held_up()
    {
        for (int i = 0; i < 1_000; i++)
        {
            ConnectionLog.CannotConnect(_logger, s_node, $"port {i}");
        }

        ConnectionLog.Lost(_logger, s_node, "reset");
        Assert.Equal(QuietLogger.LinesMax + 1, _lines.Written.Count);
    }

    [Fact]
    public void A_line_of_a_level_that_is_off_is_not_remembered()
    {
        _lines.Level = LogLevel.Error;
        ConnectionLog.Lost(_logger, s_node, "reset");
        _lines.Level = LogLevel.Trace;
        ConnectionLog.Lost(_logger, s_node, "reset");
        Assert.Single(_lines.Written);
    }

    [Fact]
    public void The_page_names_every_event_of_the_log()
    {
        string page = File.ReadAllText(Repository.FullPath("docs/client.md"));
        int[] events =
        [
            .. typeof(KahunaClient).Assembly.GetTypes()
                .SelectMany(static type => type.GetMethods(BindingFlags.Static | BindingFlags.Public))
                .Select(static method => method.GetCustomAttribute<LoggerMessageAttribute>())
                .OfType<LoggerMessageAttribute>()
                .Select(static attribute => attribute.EventId),
        ];
        Assert.NotEmpty(events);
        Assert.All(events, id => Assert.Contains($"\n| {id} | ", page, StringComparison.Ordinal));
    }

    private sealed class Recorder : ILogger
    {
        public ConcurrentQueue<string> Written { get; } = [];

        public LogLevel Level { get; set; } = LogLevel.Trace;

        public IDisposable? BeginScope<TState>(TState state)
            where TState : notnull => null;

        public bool IsEnabled(LogLevel logLevel) => logLevel >= Level;

        public void Log<TState>(
            LogLevel logLevel,
            EventId eventId,
            TState state,
            Exception? exception,
            Func<TState, Exception?, string> formatter) => Written.Enqueue(formatter(state, exception));
    }
}
