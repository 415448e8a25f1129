using System.Buffers.Binary;
using Kahuna.Server.State;

namespace Kahuna.Tests.State;

/// <summary>Takes the records of a view, as a store would.</summary>
internal static class StateRecords
{
    /// <summary>All records that are left.</summary>
    public static List<byte[]> TakeAll(StateView view)
    {
        List<byte[]> records = [];
        while (Take(view, records, int.MaxValue / 2))
        {
        }

        return records;
    }

    /// <summary>The next records, about so many bytes; false when there are no more.</summary>
    public static bool Take(StateView view, List<byte[]> records, int bytesMax)
    {
        ViewSlice slice = new(0);
        bool more = view.TryTake(slice, bytesMax);
        byte[] taken = [.. slice.Rows.Written, .. slice.PreImages.SelectMany(static chunk => chunk)];
        ReadOnlySpan<byte> rest = taken;
        while (!rest.IsEmpty)
        {
            int length = BinaryPrimitives.ReadInt32LittleEndian(rest);
            records.Add(rest.Slice(sizeof(int), length).ToArray());
            rest = rest[(sizeof(int) + length)..];
        }

        slice.Clear();
        return more;
    }
}
