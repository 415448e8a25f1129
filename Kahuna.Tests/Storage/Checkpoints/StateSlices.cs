using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.State;

namespace Kahuna.Tests.Storage.Checkpoints;

/// <summary>Reads a view as a node's state thread does.</summary>
internal static class StateSlices
{
    /// <summary>Hands the view's next records to the writer. False when there is no more.</summary>
    public static bool Add(IStateWriter writer, StateView view, int bytesMax)
    {
        ViewSlice slice = new(0);
        bool more = view.TryTake(slice, bytesMax);
        writer.Add(slice.Rows.Written);
        foreach (ArraySegment<byte> chunk in slice.PreImages)
        {
            writer.Add(chunk, scattered: true);
        }

        slice.Clear();
        return more;
    }
}
