using System.Globalization;

namespace Kahuna.Client.Wire.Commands;

/// <summary>The part of <see cref="CommandCheck"/> that concerns sequences. Stateless, any thread.</summary>
internal static class SequenceCheck
{
    /// <summary>True for the commands that are about a sequence.</summary>
    public static bool IsSequence(CommandKind kind) =>
        kind is CommandKind.SequenceCreate or CommandKind.SequenceUpdate or CommandKind.SequenceDelete or CommandKind.SequenceNext or CommandKind.SequenceGet or CommandKind.SequenceList;

    /// <summary>What is wrong with the command apart from its name and flags; null: nothing.</summary>
    public static string? Refusal(scoped in Command command)
    {
        if (command.Durability == CommandDurability.Ephemeral)
        {
            return "durability is ephemeral; sequences are persistent only";
        }

        if (command.Kind == CommandKind.SequenceNext)
        {
            return CountRefusal(in command);
        }

        if (command.Kind == CommandKind.SequenceList)
        {
            return command.AtRevision < 0 || command.Number < 0 ? "the cursor of the list is none that a server gave" : ValueRefusal(in command, 0);
        }

        if (command.Kind is not (CommandKind.SequenceCreate or CommandKind.SequenceUpdate))
        {
            return ValueRefusal(in command, 0);
        }

        if (command.Value.Length != SequenceForm.Bytes || !SequenceForm.TryRead(command.Value, out SequenceForm form))
        {
            return "the definition of the sequence is malformed";
        }

        if (command.Kind == CommandKind.SequenceCreate)
        {
            return form.Mask != 0 ? "the definition of the sequence is malformed" : form.Refusal();
        }

        if (form.Mask == 0)
        {
            return "nothing is changed; give increment, min, max or cycle";
        }

        if ((form.Mask & SequenceForm.ChangesIncrement) != 0 && form.Increment == 0)
        {
            return "increment is 0; a sequence must move";
        }

        const byte Both = SequenceForm.ChangesMin | SequenceForm.ChangesMax;
        return (form.Mask & Both) == Both && form.Min > form.Max
            ? string.Create(CultureInfo.InvariantCulture, $"min is {form.Min}, which is above max, {form.Max}")
            : null;
    }

    private static string? CountRefusal(scoped in Command command)
    {
        if (!command.Has(CommandFlags.Number))
        {
            return "count is not set; it must be 1 or greater";
        }

        if (command.Number < 1)
        {
            return string.Create(CultureInfo.InvariantCulture, $"count is {command.Number}; it must be 1 or greater");
        }

        return command.Has(CommandFlags.Keyed) && !command.Has(CommandFlags.Session) ? "keyed is set, but no key is given" : ValueRefusal(in command, 0);
    }

    private static string? ValueRefusal(scoped in Command command, int bytes) =>
        command.Value.Length == bytes ? null : string.Create(CultureInfo.InvariantCulture, $"value is {command.Value.Length:N0} bytes; this operation carries none");
}
