using System.Buffers.Binary;

namespace Kahuna.Benchmark.Workloads;

/// <summary>
/// Random payloads without cost per write: each is a window into one block of random bytes, which no one changes, so
/// that a request that timed out may keep its window. Immutable; any thread.
/// </summary>
internal sealed class PayloadPool
{
    /// <summary>
    /// Number of different windows: enough that neighbours in a batch differ and compression finds nothing.
    /// </summary>
    private const int Windows = 64 * 1024;

    private readonly byte[] _block;
    private readonly int _size;

    public PayloadPool(int size, long seed)
    {
        _size = size;
        _block = new byte[Windows + size];
        SplitMix random = new(seed, stream: -1);
        Span<byte> rest = _block;
        Span<byte> word = stackalloc byte[sizeof(ulong)];
        while (!rest.IsEmpty)
        {
            BinaryPrimitives.WriteUInt64LittleEndian(word, random.Next());
            int part = Math.Min(rest.Length, word.Length);
            word[..part].CopyTo(rest);
            rest = rest[part..];
        }
    }

    /// <summary>The payload that the lower bits of <paramref name="bits"/> choose.</summary>
    public ReadOnlyMemory<byte> Choose(ulong bits) => _block.AsMemory((int)(bits % Windows), _size);

    /// <summary>The payload that seeding gives to the key <paramref name="number"/>.</summary>
    public ReadOnlyMemory<byte> OfSeededKey(int number) => Choose((ulong)number * 8191);
}
