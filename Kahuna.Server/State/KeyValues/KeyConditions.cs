using Kahuna.Server.State.Rows;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.State.KeyValues;

/// <summary>The conditions under which a command writes a key. Stateless.</summary>
internal static class KeyConditions
{
    /// <summary>True when all of the command's conditions hold; they combine with AND.</summary>
    public static bool Hold(KeyStore store, scoped in Command command, int key)
    {
        const CommandFlags Conditions =
            CommandFlags.IfAbsent | CommandFlags.IfPresent | CommandFlags.IfValue | CommandFlags.IfRevision;
        if (!command.Has(Conditions))
        {
            return true;
        }

        if (!store.Exists(key))
        {
            return !command.Has(CommandFlags.IfPresent | CommandFlags.IfValue | CommandFlags.IfRevision);
        }

        ref KeyEntry entry = ref store.Keys[key];
        return !command.Has(CommandFlags.IfAbsent)
            && (!command.Has(CommandFlags.IfRevision) || entry.Revision == command.ComparedRevision)
            && (!command.Has(CommandFlags.IfValue)
                || (entry.IsNull == command.Has(CommandFlags.NullCompared)
                    && store.Keys.Value(in entry).SequenceEqual(command.ComparedValue)));
    }
}
