using Google.Protobuf;

namespace Kahuna.Client.Wire.Grpc;

/// <summary>
/// What the calls with a streamed request share: the request's stream, the task that waits for the response, and the end of both.
/// Owned by the typed or raw call around it; one writer and one reader at a time.
/// </summary>
internal sealed class StreamedCall : IDisposable
{
    private readonly PushContent _content = new();

    public StreamedCall(GrpcCall call)
    {
        Call = call;
        ResponseStarted = StartAsync();
    }

    public GrpcCall Call { get; }

    /// <summary>Completes when the response's headers are in; fails as the call does.</summary>
    public Task ResponseStarted { get; }

    /// <summary>Completes when there is a connection to write to.</summary>
    public Task<Stream> RequestStream => _content.Opened;

    /// <summary>Sends a message and waits until the connection has taken it.</summary>
    public async Task WriteAsync(IMessage message)
    {
        ReadOnlyMemory<byte> framed = Call.Encode(message);
        try
        {
            Stream stream = await _content.Opened.ConfigureAwait(false);
            await stream.WriteAsync(framed, Call.Ended).ConfigureAwait(false);
            await stream.FlushAsync(Call.Ended).ConfigureAwait(false);
        }
        catch (Exception e)
        {
            throw await ReasonAsync(e).ConfigureAwait(false);
        }
    }

    /// <summary>No more messages.</summary>
    public void CompleteRequests() => _content.Complete();

    /// <inheritdoc/>
    public void Dispose()
    {
        Call.Abort();
        _content.Fail(new GrpcException(GrpcStatusCode.Cancelled, "The call was ended on this side."));
        if (ResponseStarted.IsCompleted)
        {
            Call.Dispose();
        }
        else
        {
            // The response may be on its way in at this moment; it is let go once it is here.
            _ = ResponseStarted.ContinueWith(static (_, state) => ((GrpcCall)state!).Dispose(), Call, CancellationToken.None, TaskContinuationOptions.ExecuteSynchronously, TaskScheduler.Default);
        }
    }

    private async Task StartAsync()
    {
        try
        {
            await Call.SendAsync(_content).ConfigureAwait(false);
        }
        catch (Exception e)
        {
            Exception reason = Call.Translate(e);
            _content.Fail(reason);
            if (ReferenceEquals(reason, e))
            {
                throw;
            }

            throw reason;
        }
    }

    /// <summary>When writing fails because the server ended the call, what the server said is the reason.</summary>
    private async Task<Exception> ReasonAsync(Exception failure)
    {
        if (failure is not GrpcException && !Call.Ended.IsCancellationRequested)
        {
            try
            {
                await ResponseStarted.ConfigureAwait(false);
                GrpcStatus status = await Call.DrainAsync().ConfigureAwait(false);
                if (!status.IsOK)
                {
                    return new GrpcException(status, inner: failure);
                }
            }
            catch (Exception e) when (e is GrpcException or OperationCanceledException)
            {
                return e;
            }
        }

        return Call.Translate(failure);
    }
}
