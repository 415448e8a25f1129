using Kahuna.Client.Wire.Commands;
using PublicMode = Kahuna.Client.Locks.LockMode;

namespace Kahuna.Client.Connection;

/// <summary>Public enumerations as the wire has them. What has no place there becomes 0, which is refused: it is never taken for something else. Stateless.</summary>
internal static class WireLevels
{
    public static CommandDurability Of(Durability durability) => (uint)durability <= byte.MaxValue ? (CommandDurability)(byte)durability : CommandDurability.Unset;

    public static LockMode Of(PublicMode mode) => (uint)mode <= byte.MaxValue ? (LockMode)(byte)mode : LockMode.Unset;
}
