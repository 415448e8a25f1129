namespace Kahuna.Tests.Tools;

/// <summary>A measurement cannot go on; the text says why. Immutable.</summary>
internal sealed class MeasureException(string message) : Exception(message);
