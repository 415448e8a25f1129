using Kahuna.Server.State.Rows;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Routing;

namespace Kahuna.Server.State.KeyValues;

/// <summary>
/// Which commands have to keep away from the keys and ranges that prepared transactions hold. The same on every node,
/// and at the leader's door. Stateless.
/// </summary>
internal static class HeldKeyGate
{
    /// <summary>True for a write that concerns a key which a transaction holds; it may come again.</summary>
    public static bool Refuses(PreparedKeys held, scoped in Command command)
    {
        if (held.Count == 0)
        {
            return false;
        }

        switch (command.Kind)
        {
            case var kind when CommandKinds.WritesKey(kind):
                return held.IsHeld(command.Key);
            case CommandKind.Transaction:
                return AnyItem(in command, held, ofReads: false);
            case CommandKind.Script:
                ReadOnlySpan<byte> bucket = KeyRouting.Bucket(command.Key);
                return held.IsHeld(bucket) || held.AnyHeld([.. bucket, (byte)'/'], [.. bucket, (byte)('/' + 1)]);
            case CommandKind.KeyRangeDelete:
                RangeRequest asked = new(in command);
                return held.AnyHeld(asked.Start, asked.End);
            default:
                return false;
        }
    }

    /// <summary>
    /// True for a read of a key that a transaction is to write: it has to wait, because other keys of the transaction
    /// may show already that it took effect.
    /// </summary>
    public static bool Delays(PreparedKeys held, scoped in Command command)
    {
        if (held.Count == 0)
        {
            return false;
        }

        switch (command.Kind)
        {
            case var kind when CommandKinds.ReadsKey(kind):
                return held.IsWritten(command.Key);
            case CommandKind.GetMany:
                return AnyItem(in command, held, ofReads: true);
            case CommandKind.KeyRange when !command.Has(CommandFlags.IfRevision):
            case CommandKind.CutOpen:
                RangeRequest asked = new(in command);
                return held.AnyWritten(asked.Start, asked.End);
            default:
                return false;
        }
    }

    /// <summary>True for the item of a transaction that is a condition about a range.</summary>
    public static bool IsRange(scoped in Command item) => RangeCondition.Is(in item);

    /// <summary>A transaction holds a key of the range of a condition to write it.</summary>
    public static bool AnyWritten(PreparedKeys held, scoped in Command item)
    {
        RangeCondition range = new(in item);
        return held.AnyWritten(range.Start, range.End);
    }

    private static bool AnyItem(scoped in Command command, PreparedKeys held, bool ofReads)
    {
        ReadOnlySpan<byte> items = CommandList.ItemsOf(in command);
        while (CommandList.TryTake(ref items, out Command item))
        {
            if (IsRange(in item))
            {
                if (AnyWritten(held, in item))
                {
                    return true;
                }

                continue;
            }

            // Who only looks at a key may do so beside others who do.
            if (ofReads || !HeldKeys.IsWrite(item.Kind) ? held.IsWritten(item.Key) : held.IsHeld(item.Key))
            {
                return true;
            }
        }

        return false;
    }
}
