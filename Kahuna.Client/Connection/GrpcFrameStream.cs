using Kahuna.Client.Wire.Grpc;

namespace Kahuna.Client.Connection;

/// <summary>An Exchange stream of the network. Owned by the <see cref="NodeLink"/> that opened it; threading as <see cref="IFrameStream"/>.</summary>
internal sealed class GrpcFrameStream(RawDuplexCall call) : IFrameStream
{
    /// <inheritdoc/>
    public ValueTask WriteAsync(ReadOnlyMemory<byte> messages)
    {
        ValueTask written = call.RequestStream.WriteAsync(messages, call.Ended);
        if (!written.IsCompletedSuccessfully)
        {
            return FlushAfterAsync(written);
        }

        written.GetAwaiter().GetResult();
        return new ValueTask(call.RequestStream.FlushAsync(call.Ended));
    }

    /// <inheritdoc/>
    public ValueTask<int> ReadAsync(Memory<byte> buffer) => call.ResponseStream.ReadAsync(buffer, call.Ended);

    /// <inheritdoc/>
    public async ValueTask<string?> EndReasonAsync()
    {
        GrpcStatus status = await call.GetStatusAsync().ConfigureAwait(false);
        return status.IsOK ? null : status.ToString();
    }

    /// <inheritdoc/>
    public void Abort() => call.Abort();

    /// <inheritdoc/>
    public ValueTask DisposeAsync()
    {
        call.Dispose();
        return ValueTask.CompletedTask;
    }

    [System.Runtime.CompilerServices.AsyncMethodBuilder(typeof(System.Runtime.CompilerServices.PoolingAsyncValueTaskMethodBuilder))]
    private async ValueTask FlushAfterAsync(ValueTask written)
    {
        await written.ConfigureAwait(false);
        await call.RequestStream.FlushAsync(call.Ended).ConfigureAwait(false);
    }
}
