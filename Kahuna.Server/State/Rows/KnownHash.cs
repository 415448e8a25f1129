namespace Kahuna.Server.State.Rows;

/// <summary>
/// The hash of a command's key, where it is known from looking ahead; the default: it is not. A value.
/// </summary>
/// <param name="Value">What <see cref="KeyTable.HashOf(ReadOnlySpan{byte})"/> gives for the key.</param>
/// <param name="IsKnown">False: <paramref name="Value"/> means nothing.</param>
internal readonly record struct KnownHash(uint Value, bool IsKnown = true);
