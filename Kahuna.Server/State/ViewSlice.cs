using Kahuna.Wire.Buffers;

namespace Kahuna.Server.State;

/// <summary>
/// Records on their way from a <see cref="StateView"/> to who stores them, each preceded by its length (u32). Used
/// again and again; one owner at a time, who hands it on whole. Not thread-safe.
/// </summary>
internal sealed class ViewSlice(int capacity)
{
    private readonly List<ArraySegment<byte>> _preImages = [];

    /// <summary>Records whose rows ascend, over all slices of a view.</summary>
    public ByteBuffer Rows { get; } = ByteBuffer.Rent(capacity);

    /// <summary>
    /// Chunks of records that changed before their turn, in no order. Valid until <see cref="Clear"/>.
    /// </summary>
    public IReadOnlyList<ArraySegment<byte>> PreImages => _preImages;

    /// <summary>Bytes of all records.</summary>
    public long Bytes { get; private set; }

    /// <summary>Bytes of the records in no order.</summary>
    public long PreImageBytes => Bytes - Rows.Length;

    /// <summary>By the view: rows were appended.</summary>
    public void AddRows(int bytes) => Bytes += bytes;

    /// <summary>By the view: takes over a chunk from the shared pool.</summary>
    public void AddPreImages(ArraySegment<byte> chunk)
    {
        _preImages.Add(chunk);
        Bytes += chunk.Count;
    }

    /// <summary>Lets the records go.</summary>
    public void Clear()
    {
        Rows.Length = 0;
        Bytes = 0;
        foreach (ArraySegment<byte> chunk in _preImages)
        {
            BufferArrays.Return(chunk.Array!);
        }

        _preImages.Clear();
    }
}
