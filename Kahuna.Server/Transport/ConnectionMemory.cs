using System.Buffers;
using Microsoft.AspNetCore.Connections.Features;

namespace Kahuna.Server.Transport;

/// <summary>
/// The memory pool of a connection: the shared pool, but without empty buffers. Once a stream is aborted, Kestrel
/// serves its writer from this pool. The shared pool answers a request for 0 bytes, "any size", with an empty buffer,
/// on which a writer that fills one buffer after the other would spin for ever. Stateless, any thread.
/// </summary>
internal sealed class ConnectionMemory : MemoryPool<byte>, IMemoryPoolFeature
{
    public static readonly ConnectionMemory Instance = new();

    /// <summary>The size that lets the pool choose.</summary>
    private const int AnySize = -1;

    private ConnectionMemory()
    {
    }

    public override int MaxBufferSize => Shared.MaxBufferSize;

    /// <inheritdoc/>
    public MemoryPool<byte> MemoryPool => this;

    public override IMemoryOwner<byte> Rent(int minBufferSize = AnySize) =>
        Shared.Rent(minBufferSize == 0 ? AnySize : minBufferSize);

    /// <summary>Does nothing: all connections share it.</summary>
    protected override void Dispose(bool disposing)
    {
    }
}
