using Grpc.Core;

namespace Kahuna.Server.Api.Calls;

/// <summary>
/// Writes the replies of a stream, and times how long the caller takes to read them. Owned by the call's handler; one
/// writer at a time.
/// </summary>
internal sealed class WatchedWriter<TReply>(IServerStreamWriter<TReply> inner, GuardedCall call)
    : IServerStreamWriter<TReply>
{
    /// <inheritdoc/>
    public WriteOptions? WriteOptions { get => inner.WriteOptions; set => inner.WriteOptions = value; }

    /// <inheritdoc/>
    public Task WriteAsync(TReply message) => WriteAsync(message, CancellationToken.None);

    /// <inheritdoc/>
    public async Task WriteAsync(TReply message, CancellationToken cancellationToken)
    {
        call.BeginFlush();
        try
        {
            await inner.WriteAsync(message, cancellationToken).ConfigureAwait(false);
        }
        finally
        {
            call.EndFlush();
        }
    }
}
