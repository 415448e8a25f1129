using System.Collections.Concurrent;
using System.Diagnostics;
using Kahuna.Wire.Sockets;

namespace Kahuna.Client.Connection;

/// <summary>
/// A stream whose frames go over a direct link. Its call stays open beside it and says how the stream ended. Owned by
/// the <see cref="NodeLink"/> that opened it; threading as <see cref="IFrameStream"/>.
/// </summary>
internal sealed class DirectFrameStream : IFrameStream
{
    /// <summary>How long the end of the call is awaited after that of the link.</summary>
    private static readonly TimeSpan s_endWait = TimeSpan.FromSeconds(1);

    private readonly GrpcFrameStream _call;
    private readonly DirectLink _link;
    private readonly Task<bool> _callEnd;

    public DirectFrameStream(GrpcFrameStream call, DirectLink link)
    {
        (_call, _link) = (call, link);
        _callEnd = WatchCallAsync();
    }

    /// <inheritdoc/>
    public ValueTask WriteAsync(ReadOnlyMemory<byte> messages) => _link.WriteAsync(messages);

    /// <inheritdoc/>
    public ValueTask<int> ReadAsync(Memory<byte> buffer) => _link.ReadAsync(buffer);

    /// <inheritdoc/>
    public async ValueTask<string?> EndReasonAsync()
    {
        await Task.WhenAny(_callEnd, Task.Delay(s_endWait)).ConfigureAwait(false);
        return HasCallEnded ? await _call.EndReasonAsync().ConfigureAwait(false) : null;
    }

    /// <inheritdoc/>
    public StreamStatus? EndStatus => HasCallEnded ? _call.EndStatus : null;

    /// <inheritdoc/>
    public void Abort()
    {
        _link.Close();
        _call.Abort();
    }

    /// <inheritdoc/>
    public async ValueTask DisposeAsync()
    {
        _link.Dispose();
        await _call.DisposeAsync().ConfigureAwait(false);
    }

    /// <summary>The node has ended the call, and said how.</summary>
    private bool HasCallEnded => _callEnd.IsCompletedSuccessfully && _callEnd.GetAwaiter().GetResult();

    /// <summary>
    /// The link ends with the call: the node may have ended it, or its connection may be lost. True if the node did.
    /// </summary>
    private async Task<bool> WatchCallAsync()
    {
        try
        {
            byte[] nothing = new byte[1];
            while (await _call.ReadAsync(nothing).ConfigureAwait(false) > 0)
            {
                // The node sends frames over the link.
            }

            return true;
        }
        catch (Exception)
        {
            // Whatever it is: the stream cannot go on without its call.
            return false;
        }
        finally
        {
            _link.Close();
        }
    }
}

/// <summary>
/// Opens the direct links of a client, and remembers to which nodes there was none. Owned by the channel; any thread.
/// </summary>
/// <param name="settings">Whom to trust.</param>
internal sealed class DirectLinkDialer(ConnectionSettings settings)
{
    /// <summary>
    /// How long a node to which there was no way is not asked: something between may keep such connections away.
    /// </summary>
    private static readonly TimeSpan s_retryAfter = TimeSpan.FromMinutes(5);

    private readonly ConcurrentDictionary<Uri, long> _failed = new();
    private readonly string? _trustedCaFile = settings.TrustedCaFile;
    private readonly bool _insecure = settings.Insecure;

    /// <summary>Operations wait meanwhile, and have their own timeouts.</summary>
    private static readonly TimeSpan s_openTimeoutMax = TimeSpan.FromSeconds(5);

    /// <summary>The stream on its call needs a part of the time that connecting may take.</summary>
    private readonly TimeSpan _openTimeout =
        settings.ConnectTimeout / 2 < s_openTimeoutMax ? settings.ConnectTimeout / 2 : s_openTimeoutMax;

    private readonly KeepAlive _keepAlive = new(settings.KeepAliveInterval, settings.KeepAliveTimeout);

    /// <summary>A stream to the node may ask for a link.</summary>
    public bool MayAsk(Uri endpoint) =>
        DirectLinkProtocol.IsSupported && endpoint.Scheme == Uri.UriSchemeHttps
        && !(_failed.TryGetValue(endpoint, out long at) && Stopwatch.GetElapsedTime(at) < s_retryAfter);

    /// <summary>The stream of a call: over a direct link if the node has offered one and it can be opened.</summary>
    public async ValueTask<IFrameStream> CarryAsync(Uri endpoint, GrpcFrameStream call, CancellationToken ct)
    {
        if (call.HeaderOf(DirectLinkProtocol.Header) is not { } ticket)
        {
            return call;
        }

        DirectLink? link = await TryOpenAsync(endpoint, ticket, ct).ConfigureAwait(false);
        if (link is not null)
        {
            _failed.TryRemove(endpoint, out _);
            return new DirectFrameStream(call, link);
        }

        _failed[endpoint] = Stopwatch.GetTimestamp();
        if (ct.IsCancellationRequested)
        {
            await call.DisposeAsync().ConfigureAwait(false);
            ct.ThrowIfCancellationRequested();
        }

        return call;
    }

    private async Task<DirectLink?> TryOpenAsync(Uri endpoint, string ticket, CancellationToken ct)
    {
        try
        {
            return await DirectLink.TryOpenAsync(
                endpoint, ServerTrust.For(endpoint, _trustedCaFile, _insecure), ticket, _keepAlive, _openTimeout, ct)
                .ConfigureAwait(false);
        }
        catch (IOException)
        {
            // The file of trusted authorities cannot be read now; the call is open already.
            return null;
        }
    }
}
