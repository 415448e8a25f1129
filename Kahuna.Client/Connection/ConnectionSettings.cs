namespace Kahuna.Client.Connection;

/// <summary>What a connection takes from the client's options, copied so that later changes of them have no effect. Immutable.</summary>
internal sealed record ConnectionSettings
{
    public required IReadOnlyList<Uri> Endpoints { get; init; }

    public required TimeSpan RequestTimeout { get; init; }

    public required TimeSpan ConnectTimeout { get; init; }

    public required TimeSpan BackoffMin { get; init; }

    public required TimeSpan BackoffMax { get; init; }

    /// <summary>As <see cref="BackoffMax"/>, for a connection that no operation waits for.</summary>
    public required TimeSpan ReconnectMax { get; init; }

    public required int MaxInFlight { get; init; }

    /// <summary>New operations that may wait for a way, or in a stream for a place.</summary>
    public required int MaxWaiting { get; init; }

    /// <summary>Continuations run on the reader of a stream.</summary>
    public required bool InlineContinuations { get; init; }

    /// <summary>While the leader cannot be reached, other nodes are asked to bring operations there. Not for what nodes forward: it would go round in circles.</summary>
    public bool AsksToForward { get; init; } = true;

    public static ConnectionSettings From(KahunaClientOptions options) => new()
    {
        Endpoints = [.. options.Endpoints.Distinct()],
        RequestTimeout = options.RequestTimeout,
        ConnectTimeout = options.ConnectTimeout,
        BackoffMin = options.RetryBackoffMin,
        BackoffMax = options.RetryBackoffMax,
        ReconnectMax = options.ReconnectBackoffMax,
        MaxInFlight = options.MaxInFlight,
        MaxWaiting = options.MaxWaiting,
        InlineContinuations = options.AllowSynchronousContinuations,
    };
}
