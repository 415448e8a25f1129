namespace Kahuna.Client.Connection;

/// <summary>What a connection takes from the client's options, copied so that later changes of them have no effect. Immutable.</summary>
internal sealed record ConnectionSettings
{
    public required IReadOnlyList<Uri> Endpoints { get; init; }

    public required TimeSpan RequestTimeout { get; init; }

    public required TimeSpan ConnectTimeout { get; init; }

    public required TimeSpan BackoffMin { get; init; }

    public required TimeSpan BackoffMax { get; init; }

    public required int MaxInFlight { get; init; }

    /// <summary>Continuations run on the reader of a stream.</summary>
    public required bool InlineContinuations { get; init; }

    public static ConnectionSettings From(KahunaClientOptions options) => new()
    {
        Endpoints = [.. options.Endpoints.Distinct()],
        RequestTimeout = options.RequestTimeout,
        ConnectTimeout = options.ConnectTimeout,
        BackoffMin = options.RetryBackoffMin,
        BackoffMax = options.RetryBackoffMax,
        MaxInFlight = options.MaxInFlight,
        InlineContinuations = options.AllowSynchronousContinuations,
    };
}
