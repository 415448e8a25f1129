using System.Diagnostics.CodeAnalysis;
using System.Runtime.CompilerServices;

namespace Kahuna.Server.Primitives;

/// <summary>
/// A broken invariant: a bug in this program. It stops the group; no caller catches it to continue. Immutable.
/// </summary>
internal sealed class InvariantException(string message) : Exception(message)
{
    /// <summary>Throws when <paramref name="holds"/> is false; also in release builds.</summary>
    public static void Require(
        [DoesNotReturnIf(false)] bool holds,
        string rule,
        [CallerFilePath] string file = "",
        [CallerLineNumber] int line = 0)
    {
        if (!holds)
        {
            Throw(rule, file, line);
        }
    }

    [DoesNotReturn]
    private static void Throw(string rule, string file, int line) =>
        throw new InvariantException($"Invariant broken: {rule} ({Path.GetFileName(file)}:{line}).");
}
