using Kahuna.Server.State.Rows;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Routing;

namespace Kahuna.Server.Partitions.Requests;

/// <summary>
/// Which writes have to keep away from the keys that pessimistic transactions hold. At the leader's door only: an entry
/// is never judged by it. Stateless.
/// </summary>
internal static class HoldGate
{
    /// <summary>True for a write of a key that another transaction holds, in whatever mode.</summary>
    public static bool Refuses(KeyHolds holds, scoped in Command command)
    {
        switch (command.Kind)
        {
            case var kind when CommandKinds.WritesKey(kind):
                return holds.IsHeldByOther(command.Key, null);
            case CommandKind.Transaction or CommandKind.TransactionPrepare:
                return AnyWritten(holds, in command);
            case CommandKind.Script:
                ReadOnlySpan<byte> bucket = KeyRouting.Bucket(command.Key);
                return holds.IsHeldByOther(bucket, null)
                    || holds.AnyHeld([.. bucket, (byte)'/'], [.. bucket, (byte)('/' + 1)]);
            case CommandKind.KeyRangeDelete:
                RangeRequest asked = new(in command);
                return holds.AnyHeld(asked.Start, asked.End);
            default:
                return false;
        }
    }

    private static bool AnyWritten(KeyHolds holds, scoped in Command command)
    {
        TransactionId? own = command.Holder.IsEmpty ? null : TransactionId.Read(command.Holder);
        ReadOnlySpan<byte> items = CommandList.ItemsOf(in command);
        while (CommandList.TryTake(ref items, out Command item))
        {
            if (HeldKeys.IsWrite(item.Kind) && holds.IsHeldByOther(item.Key, own))
            {
                return true;
            }
        }

        return false;
    }
}
