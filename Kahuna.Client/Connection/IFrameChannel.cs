namespace Kahuna.Client.Connection;

/// <summary>The way to the nodes: opens streams of bytes. The connection logic knows the network only through it. Owned by the connection; any thread.</summary>
internal interface IFrameChannel : IAsyncDisposable
{
    /// <summary>Opens an Exchange stream to a node. Throws when that fails; the message tells a person why.</summary>
    ValueTask<IFrameStream> OpenAsync(Uri endpoint, CancellationToken ct);
}
