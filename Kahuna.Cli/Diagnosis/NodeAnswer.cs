using System.Text.Json;

namespace Kahuna.Cli.Diagnosis;

/// <summary>What one node answered to a request of its own, or why it did not. Immutable.</summary>
/// <param name="Endpoint">The node.</param>
internal sealed record NodeAnswer(Uri Endpoint)
{
    /// <summary>The document; null: there is none.</summary>
    public JsonElement? Root { get; init; }

    /// <summary>Why there is no document, as a sentence; null: there is one.</summary>
    public string? Problem { get; init; }

    /// <summary>The node answered, but only administrators may ask it.</summary>
    public bool IsRefused { get; init; }

    /// <inheritdoc cref="NodeReport.ClockAhead"/>
    public TimeSpan? ClockAhead { get; init; }
}
