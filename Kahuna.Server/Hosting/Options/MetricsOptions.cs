namespace Kahuna.Server.Hosting.Options;

/// <summary>The options of a node about its metrics. Immutable; any thread.</summary>
internal sealed record MetricsOptions
{
    /// <summary>Far above what an operation takes on a healthy cluster.</summary>
    public static readonly TimeSpan SlowLogThresholdDefault = TimeSpan.FromMilliseconds(100);

    /// <summary>Whether operations are counted and the page <c>/metrics</c> is served.</summary>
    public bool IsOn { get; init; } = true;

    /// <summary>From how long on an operation is noted in the slow log; null: none is.</summary>
    public TimeSpan? SlowLogThreshold { get; init; } = SlowLogThresholdDefault;

    /// <summary>The share of the operations without a caller's trace that are traced, 0 to 1.</summary>
    public double TraceRatio { get; init; }

    /// <summary>Where metrics and traces are sent; null: as the variables of OpenTelemetry say, if they do.</summary>
    public Uri? OtlpEndpoint { get; init; }

    /// <summary>Whether the variables of OpenTelemetry name a receiver.</summary>
    public bool IsReceiverInEnvironment { get; init; }

    /// <summary>Whether metrics and traces are sent.</summary>
    public bool Exports => IsOn && (OtlpEndpoint is not null || IsReceiverInEnvironment);
}
