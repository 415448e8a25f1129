using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.State.Rows;

/// <summary>
/// A growing table of structs in chunks of equal size. Growing adds one chunk and never moves a row, so it costs the
/// same at a million rows as at ten, and a reference to a row stays good. The collector sees one object without
/// references per chunk. Owned by the state of one partition; not thread-safe.
/// </summary>
internal sealed class ChunkedTable<T>
    where T : unmanaged
{
    /// <summary>
    /// Rows of one chunk: small enough that a partition with few keys costs little, large enough that a million keys
    /// are a few hundred objects.
    /// </summary>
    public const int ChunkRows = 1 << ChunkShift;

    private const int ChunkShift = 12;

    private T[][] _chunks = [];
    private int _chunkCount;

    /// <summary>Rows that were ever taken: those behind hold anything.</summary>
    private int _taken;

    /// <summary>Rows in use; indexes are 0 to Count - 1.</summary>
    public int Count { get; private set; }

    /// <summary>Bytes of all chunks.</summary>
    public long Bytes => (long)_chunkCount * ChunkRows * Unsafe.SizeOf<T>();

    // The directory's bounds check stays; inside a chunk the masked index is below its length by construction.
    public ref T this[int index]
    {
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        get => ref Unsafe.Add(
            ref MemoryMarshal.GetArrayDataReference(_chunks[index >> ChunkShift]), index & (ChunkRows - 1));
    }

    /// <summary>Takes the next row and returns its index. The row holds zeros.</summary>
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    public int Add()
    {
        if (Count == _chunkCount << ChunkShift)
        {
            AddChunk();
        }

        if (Count == _taken)
        {
            _taken++;
            this[Count] = default;
        }

        return Count++;
    }

    private void AddChunk()
    {
        if (_chunkCount == _chunks.Length)
        {
            Array.Resize(ref _chunks, Math.Max(4, _chunks.Length * 2));
        }

        // Rows are cleared as they are taken: a state of a few keys does not pay for the clearing of whole chunks.
        // The first chunk is ordinary memory: a small table may not live long.
        _chunks[_chunkCount] = _chunkCount == 0
            ? GC.AllocateUninitializedArray<T>(ChunkRows)
            : PinnedMemory.Allocate<T>(ChunkRows);
        _chunkCount++;
    }
}
