using System.Net;

namespace Kahuna.Client.Wire.Grpc;

/// <summary>
/// The body of a request whose messages are written while the call runs: hands the connection's stream to the writer and
/// lasts until the writer says that it is complete. Owned by a <see cref="StreamedCall"/>; any thread.
/// </summary>
internal sealed class PushContent : HttpContent
{
    private readonly TaskCompletionSource<Stream> _opened = new(TaskCreationOptions.RunContinuationsAsynchronously);
    private readonly TaskCompletionSource _completed = new(TaskCreationOptions.RunContinuationsAsynchronously);

    /// <summary>The stream to write to, when there is a connection.</summary>
    public Task<Stream> Opened => _opened.Task;

    /// <summary>The last byte was written.</summary>
    public void Complete() => _completed.TrySetResult();

    /// <summary>There will be no stream, or nothing more will be written to it.</summary>
    public void Fail(Exception reason)
    {
        if (_opened.TrySetException(reason))
        {
            // Nobody may be waiting for the stream of a call that failed before it was written to.
            _ = _opened.Task.Exception;
        }

        _completed.TrySetResult();
    }

    /// <inheritdoc/>
    protected override Task SerializeToStreamAsync(Stream stream, TransportContext? context) => SerializeToStreamAsync(stream, context, CancellationToken.None);

    /// <inheritdoc/>
    protected override async Task SerializeToStreamAsync(Stream stream, TransportContext? context, CancellationToken cancellationToken)
    {
        // The flush sends the request's headers: a server may answer, or refuse, before it sees a message.
        await stream.FlushAsync(cancellationToken).ConfigureAwait(false);
        if (!_opened.TrySetResult(stream))
        {
            throw new IOException("The connection was lost, and a stream that was handed out cannot be sent again.");
        }

        await _completed.Task.WaitAsync(cancellationToken).ConfigureAwait(false);
    }

    /// <inheritdoc/>
    protected override bool TryComputeLength(out long length)
    {
        length = 0;
        return false;
    }
}
