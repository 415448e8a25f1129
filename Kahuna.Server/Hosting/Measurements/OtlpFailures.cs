using System.Diagnostics.Tracing;

namespace Kahuna.Server.Hosting.Measurements;

/// <summary>
/// Hears what OpenTelemetry's exporter reports of its failures, which is nowhere else. Any thread.
/// </summary>
internal sealed class OtlpFailures : EventListener
{
    private const string SourceName = "OpenTelemetry-Exporter-OpenTelemetryProtocol";

    /// <summary>Longest reason that is passed on.</summary>
    private const int CharactersMax = 500;

    private static readonly TimeSpan s_pause = TimeSpan.FromMinutes(1);

    private readonly Action<string>? _failed;
    private readonly TimeProvider? _time;
    private readonly Lock _lock = new();
    private long? _toldAt;

    /// <summary>Begins to listen.</summary>
    /// <param name="failed">Gets a reason, at most once a minute.</param>
    /// <param name="time">The clock.</param>
    public OtlpFailures(Action<string> failed, TimeProvider time)
    {
        _time = time;
        _failed = failed;
    }

    /// <inheritdoc/>
    protected override void OnEventSourceCreated(EventSource eventSource)
    {
        // Called by the constructor of the base class, before this one's.
        if (eventSource.Name == SourceName)
        {
            EnableEvents(eventSource, EventLevel.Warning);
        }
    }

    /// <inheritdoc/>
    protected override void OnEventWritten(EventWrittenEventArgs eventData)
    {
        if (_failed is not { } failed || _time is null)
        {
            return;
        }

        lock (_lock)
        {
            if (_toldAt is { } at && _time.GetElapsedTime(at) < s_pause)
            {
                return;
            }

            _toldAt = _time.GetTimestamp();
        }

        string text = string.Join("; ", (eventData.Payload ?? (IEnumerable<object?>)[]).Select(
            static part => part?.ToString()?.ReplaceLineEndings(" ")));
        failed(text.Length <= CharactersMax ? text : text[..CharactersMax]);
    }
}
