using System.IO.Pipelines;
using System.Net;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Http.Features;

namespace Kahuna.Server.Transport;

/// <summary>
/// A connection that counts for its address until its socket is closed. The web server disposes each connection that it
/// was given, however it ends. Owned by it; as thread-safe as the connection.
/// </summary>
/// <param name="inner">The connection.</param>
/// <param name="slot">Its place among those of its address.</param>
internal sealed class CountedConnection(ConnectionContext inner, IDisposable slot) : ConnectionContext
{
    public override string ConnectionId
    {
        get => inner.ConnectionId;
        set => inner.ConnectionId = value;
    }

    public override IFeatureCollection Features => inner.Features;

    public override IDictionary<object, object?> Items
    {
        get => inner.Items;
        set => inner.Items = value;
    }

    public override IDuplexPipe Transport
    {
        get => inner.Transport;
        set => inner.Transport = value;
    }

    public override CancellationToken ConnectionClosed
    {
        get => inner.ConnectionClosed;
        set => inner.ConnectionClosed = value;
    }

    public override EndPoint? LocalEndPoint
    {
        get => inner.LocalEndPoint;
        set => inner.LocalEndPoint = value;
    }

    public override EndPoint? RemoteEndPoint
    {
        get => inner.RemoteEndPoint;
        set => inner.RemoteEndPoint = value;
    }

    public override void Abort() => inner.Abort();

    public override void Abort(ConnectionAbortedException abortReason) => inner.Abort(abortReason);

    public override async ValueTask DisposeAsync()
    {
        try
        {
            await inner.DisposeAsync().ConfigureAwait(false);
        }
        finally
        {
            slot.Dispose();
        }
    }
}
