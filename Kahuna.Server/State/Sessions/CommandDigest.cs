using Kahuna.Wire.Commands;
using Kahuna.Wire.Routing;

namespace Kahuna.Server.State.Sessions;

/// <summary>
/// What tells a command apart from others that wrongly carry its number: every field that says what is to be done, each
/// at a place of its own. Stored with outcomes, so the hash is a public one. Stateless.
/// </summary>
internal static class CommandDigest
{
    private const ulong Odd = 0x9E3779B185EBCA87;

    public static uint Of(scoped in Command command)
    {
        ulong fields = ((ulong)(command.Flags & ~CommandFlags.Opening) << 40) | ((ulong)command.Kind << 32);
        fields = unchecked((fields * Odd) + (ulong)command.Number);
        fields = unchecked((fields * Odd) + (ulong)command.TtlMs);
        fields = unchecked((fields * Odd) + (ulong)command.ComparedRevision);
        ulong check = XxHash64.Hash(command.Value, XxHash64.Hash(command.Key, fields));
        check = command.Has(CommandFlags.IfValue) ? XxHash64.Hash(command.ComparedValue, check) : check;
        check = command.Has(CommandFlags.Fenced)
            ? XxHash64.Hash(command.FenceName, unchecked(check + ((ulong)command.FenceToken * Odd)))
            : check;
        return (uint)(check >> 32);
    }
}
