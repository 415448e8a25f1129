namespace Kahuna.Client.Wire.Grpc;

/// <summary>
/// An open stream in both directions without message objects, for callers that frame by themselves. Owned by its caller,
/// who disposes it; one writer and one reader at a time.
/// </summary>
internal sealed class RawDuplexCall : IDisposable
{
    private readonly StreamedCall _call;

    internal RawDuplexCall(StreamedCall call, Stream requestStream, Stream responseStream)
    {
        _call = call;
        RequestStream = requestStream;
        ResponseStream = responseStream;
    }

    /// <summary>Cancelled by <see cref="Abort"/>, <see cref="Dispose"/> and the deadline. A read or write that shall end with the call takes it along.</summary>
    public CancellationToken Ended => _call.Call.Ended;

    /// <summary>
    /// Takes whole messages with their five-byte prefix, in pieces of any size; what was written leaves with the next flush
    /// at the latest. Waits while the server does not read.
    /// </summary>
    public Stream RequestStream { get; }

    /// <summary>Gives messages with their prefix, in pieces as they arrive; its end is the end of the call.</summary>
    public Stream ResponseStream { get; }

    /// <summary>Ends the requests; the server sees the end of its input.</summary>
    public async ValueTask CompleteRequestsAsync()
    {
        await RequestStream.FlushAsync(_call.Call.Ended).ConfigureAwait(false);
        _call.CompleteRequests();
    }

    /// <summary>
    /// How the call ended. To be asked after the end or a failure of <see cref="ResponseStream"/>; what is left of the
    /// response is passed over, so it waits for the server's end. Never throws.
    /// </summary>
    public Task<GrpcStatus> GetStatusAsync() => _call.Call.DrainAsync();

    /// <summary>Ends the call at once, from any thread: reads and writes that took <see cref="Ended"/> along fail, and the server sees the stream cancelled.</summary>
    public void Abort() => _call.Call.Abort();

    /// <summary>Lets go of the call; aborts it when it was not over.</summary>
    public void Dispose() => _call.Dispose();
}
