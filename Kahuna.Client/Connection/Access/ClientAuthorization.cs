namespace Kahuna.Client.Connection.Access;

/// <summary>
/// The authorization header of one client: read once for all streams and calls, and again when a node refuses it or
/// when it is old. Owned by the connection; any thread.
/// </summary>
/// <param name="source">Where it is read.</param>
/// <param name="time">The clock of its age.</param>
/// <param name="captures">Continuations run in the caller's context.</param>
internal sealed class ClientAuthorization(AuthorizationSource source, TimeProvider time, bool captures)
{
    private readonly Lock _lock = new();
    private readonly SemaphoreSlim _reading = new(1);
    private AuthorizationHeader _current;
    private long _readAt;
    private bool _isStale = true;

    /// <summary>The current text was read after a refusal.</summary>
    private bool _followsRefusal;

    /// <summary>Another attempt with other credentials may succeed after a refusal.</summary>
    public bool IsRenewable => source.IsRenewable;

    /// <summary>The current header. One caller reads it while the others wait.</summary>
    /// <exception cref="IOException">It cannot be read; the message says why.</exception>
    /// <exception cref="OperationCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public ValueTask<AuthorizationHeader> GetAsync(CancellationToken ct) =>
        Current() is { } current ? new ValueTask<AuthorizationHeader>(current) : ReadAsync(ct);

    /// <summary>A node has refused a header as unauthenticated.</summary>
    /// <param name="refused">The version of what was sent.</param>
    /// <param name="hasLasted">The node had accepted it for a while.</param>
    /// <returns>
    /// True: an attempt with the header as it is from now on is worth making at once. False: it was read after another
    /// refusal, or never changes.
    /// </returns>
    public bool Refuse(int refused, bool hasLasted)
    {
        if (!source.IsRenewable)
        {
            return false;
        }

        lock (_lock)
        {
            if (refused != _current.Version)
            {
                return true;
            }

            bool isWorthTrying = hasLasted || _isStale || !_followsRefusal;
            (_isStale, _followsRefusal) = (true, true);
            return isWorthTrying;
        }
    }

    private AuthorizationHeader? Current()
    {
        lock (_lock)
        {
            bool isOld = source.RenewAfter is { } age && time.GetElapsedTime(_readAt) >= age;
            return _isStale || isOld ? null : _current;
        }
    }

    private async ValueTask<AuthorizationHeader> ReadAsync(CancellationToken ct)
    {
        if (!source.IsRenewable)
        {
            return Take(await source.ReadAsync(ct).ConfigureAwait(captures));
        }

        await _reading.WaitAsync(ct).ConfigureAwait(captures);
        try
        {
            return Current()
                ?? Take(await source.ReadAsync(ct).AsTask().WaitAsync(ct).ConfigureAwait(captures));
        }
        finally
        {
            _reading.Release();
        }
    }

    private AuthorizationHeader Take(string? text)
    {
        lock (_lock)
        {
            _current = new AuthorizationHeader(text, source.IsRenewable ? _current.Version + 1 : 1);
            _readAt = time.GetTimestamp();
            _isStale = false;
            return _current;
        }
    }
}

/// <summary>An authorization header as it was at some time. A value.</summary>
/// <param name="Text">What is sent; null: nothing. Secret.</param>
/// <param name="Version">Grows each time that it is read.</param>
internal readonly record struct AuthorizationHeader(string? Text, int Version)
{
    /// <inheritdoc/>
    public override string ToString() => FormattableString.Invariant($"authorization, version {Version}");
}
