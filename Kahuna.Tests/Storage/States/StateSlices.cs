using Kahuna.Server.Partitions;
using Kahuna.Server.State;

namespace Kahuna.Tests.Storage.States;

/// <summary>What a node's state thread does with a view.</summary>
internal static class StateSlices
{
    /// <summary>Hands the view's next records to the writer. False when there is no more.</summary>
    public static bool Add(IStateWriter writer, StateView view, int bytesMax)
    {
        StateSlice slice = new(0);
        bool more = view.TryTake(slice, bytesMax);
        writer.Add(slice.Rows.Written);
        foreach (ArraySegment<byte> chunk in slice.Aside)
        {
            writer.Add(chunk, scattered: true);
        }

        slice.Clear();
        return more;
    }
}
