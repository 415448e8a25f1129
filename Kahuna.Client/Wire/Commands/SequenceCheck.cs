using System.Globalization;

namespace Kahuna.Wire.Commands;

/// <summary>The part of <see cref="CommandCheck"/> for sequences. Stateless, any thread.</summary>
internal static class SequenceCheck
{
    /// <summary>Why the command is refused, apart from its name and flags; null when it is valid.</summary>
    public static string? Refusal(scoped in Command command)
    {
        if (command.Durability == Durability.Ephemeral)
        {
            return "durability is ephemeral; sequences are persistent only";
        }

        if (command.Kind == CommandKind.SequenceNext)
        {
            return CountRefusal(in command);
        }

        if (command.Kind == CommandKind.SequenceList)
        {
            return command.Cursor < 0 || command.Partition < 0
                ? "the cursor of the list did not come from a server"
                : ValueRefusal(in command, 0);
        }

        if (command.Kind is not (CommandKind.SequenceCreate or CommandKind.SequenceUpdate))
        {
            return ValueRefusal(in command, 0);
        }

        if (command.Value.Length != SequenceBody.Bytes || !SequenceBody.TryRead(command.Value, out SequenceBody body))
        {
            return "the definition of the sequence is malformed";
        }

        if (command.Kind == CommandKind.SequenceCreate)
        {
            return body.Mask != 0 ? "the definition of the sequence is malformed" : body.Refusal();
        }

        if (body.Mask == 0)
        {
            return "nothing is changed; give increment, min, max or cycle";
        }

        if ((body.Mask & SequenceBody.ChangesIncrement) != 0 && body.Increment == 0)
        {
            return "increment is 0; a sequence must move";
        }

        const byte Both = SequenceBody.ChangesMin | SequenceBody.ChangesMax;
        return (body.Mask & Both) == Both && body.Min > body.Max
            ? string.Create(CultureInfo.InvariantCulture, $"min is {body.Min}, which is above max, {body.Max}")
            : null;
    }

    private static string? CountRefusal(scoped in Command command)
    {
        if (!command.Has(CommandFlags.Number))
        {
            return "count is not set; it must be 1 or greater";
        }

        if (command.Count < 1)
        {
            return string.Create(CultureInfo.InvariantCulture, $"count is {command.Count}; it must be 1 or greater");
        }

        return command.Has(CommandFlags.Keyed) && !command.Has(CommandFlags.Session)
            ? "keyed is set, but no key is given"
            : ValueRefusal(in command, 0);
    }

    private static string? ValueRefusal(scoped in Command command, int bytes) =>
        command.Value.Length == bytes
            ? null
            : string.Create(
                CultureInfo.InvariantCulture, $"value is {command.Value.Length:N0} bytes; this operation carries none");
}
