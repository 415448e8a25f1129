namespace Kahuna.Client.Wire.Commands;

/// <summary>Durability level as the log writes it. 0 is refused, never mapped to a default.</summary>
internal enum CommandDurability : byte
{
    Unset = 0,
    Persistent = 1,
    Ephemeral = 2,
}
