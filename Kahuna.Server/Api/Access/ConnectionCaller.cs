using System.Runtime.InteropServices;
using System.Security.Cryptography;
using Kahuna.Server.Access;
using Microsoft.AspNetCore.Connections;

namespace Kahuna.Server.Api.Access;

/// <summary>
/// The latest caller of a connection, so that a client that shows the same with each call is looked up once per change
/// of the records. A feature of the connection; any thread.
/// </summary>
internal sealed class ConnectionCaller
{
    private volatile Remembered? _latest;

    /// <summary>The middleware of an endpoint, which gives each connection one.</summary>
    public static ConnectionDelegate Middleware(ConnectionDelegate next) => connection =>
    {
        connection.Features.Set(new ConnectionCaller());
        return next(connection);
    };

    /// <summary>
    /// Who showed this header, if it is the latest and nothing has changed since. A proxy may carry the calls of many,
    /// so the comparison does not tell how much of a header is right.
    /// </summary>
    public Caller? Find(string header, AccessBook book) =>
        _latest is { } latest
        && ReferenceEquals(latest.Book, book)
        && CryptographicOperations.FixedTimeEquals(
            MemoryMarshal.AsBytes(latest.Header.AsSpan()), MemoryMarshal.AsBytes(header.AsSpan()))
        && latest.Caller.End is null
            ? latest.Caller
            : null;

    /// <summary>Remembers who showed this header.</summary>
    public void Remember(string header, AccessBook book, Caller caller) =>
        _latest = new Remembered(header, book, caller);

    private sealed record Remembered(string Header, AccessBook Book, Caller Caller);
}
