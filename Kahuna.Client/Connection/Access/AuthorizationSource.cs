namespace Kahuna.Client.Connection.Access;

/// <summary>
/// Where a client gets its authorization header from. Immutable; any thread. Its texts are secret: nothing logs them.
/// </summary>
internal sealed class AuthorizationSource
{
    private readonly string? _text;
    private readonly Func<CancellationToken, ValueTask<string?>>? _read;

    private AuthorizationSource(
        string? text, Func<CancellationToken, ValueTask<string?>>? read, TimeSpan? renewAfter) =>
        (_text, _read, RenewAfter) = (text, read, renewAfter);

    /// <summary>No header, which never changes.</summary>
    public static AuthorizationSource None { get; } = new(null, null, null);

    /// <summary>Another text may be read after a refusal.</summary>
    public bool IsRenewable => _read is not null;

    /// <summary>A text is read again when it is this old; null: only after a refusal.</summary>
    public TimeSpan? RenewAfter { get; }

    /// <summary>Always the same text.</summary>
    public static AuthorizationSource Fixed(string text) => new(text, null, null);

    /// <summary>A text that is read when it is needed; null: no header.</summary>
    public static AuthorizationSource Renewed(
        Func<CancellationToken, ValueTask<string?>> read, TimeSpan? renewAfter = null) => new(null, read, renewAfter);

    /// <summary>The header's text; null: no header.</summary>
    /// <exception cref="IOException">It cannot be had; the message says why.</exception>
    public async ValueTask<string?> ReadAsync(CancellationToken ct)
    {
        if (_read is null)
        {
            return _text;
        }

        try
        {
            return await _read(ct).ConfigureAwait(false);
        }
        catch (Exception failure) when (failure is not OperationCanceledException || !ct.IsCancellationRequested)
        {
            throw new IOException($"The client's credentials cannot be read: {failure.Message}", failure);
        }
    }
}
