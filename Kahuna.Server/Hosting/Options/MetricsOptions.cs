namespace Kahuna.Server.Hosting.Options;

/// <summary>The options of a node about its metrics. Immutable; any thread.</summary>
internal sealed record MetricsOptions
{
    /// <summary>Whether operations are counted and the page <c>/metrics</c> is served.</summary>
    public bool IsOn { get; init; } = true;

    /// <summary>Where the metrics are sent; null: as the variables of OpenTelemetry say, if they do.</summary>
    public Uri? OtlpEndpoint { get; init; }

    /// <summary>Whether the variables of OpenTelemetry name a receiver.</summary>
    public bool IsReceiverInEnvironment { get; init; }

    /// <summary>Whether the metrics are sent.</summary>
    public bool Exports => IsOn && (OtlpEndpoint is not null || IsReceiverInEnvironment);
}
