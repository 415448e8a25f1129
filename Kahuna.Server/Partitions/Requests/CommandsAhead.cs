using Kahuna.Server.State;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.Partitions.Requests;

/// <summary>Tells the state which keys the next group of commands is about. Stateless.</summary>
internal static class CommandsAhead
{
    /// <summary>
    /// The next commands of an entry, of which so many are left. What does not decode is left to the applier.
    /// </summary>
    public static void OfEntry(Prefetcher ahead, ReadOnlySpan<byte> items, int left)
    {
        if (left == 1)
        {
            ahead.Forget();
            return;
        }

        for (int i = Math.Min(left, Prefetcher.CommandsMax); i > 0
            && CommandEntry.TryReadItem(ref items, out ReadOnlySpan<byte> bytes); i--)
        {
            ahead.Add(Command.KeyOf(bytes));
        }

        ahead.PrefetchWrites();
    }

    /// <summary>The reads first in line, those behind them that are not confirmed yet included.</summary>
    public static void OfReads(Prefetcher ahead, ReadQueue reads)
    {
        for (int i = 0; i < reads.Count && i < Prefetcher.CommandsMax; i++)
        {
            ref readonly ReadQueue.PendingRead read = ref reads[i];
            ahead.Add(Command.KeyOf(read.Batch.Command(read.Batch.Operations[read.Operation])));
        }

        ahead.PrefetchReads();
    }
}
