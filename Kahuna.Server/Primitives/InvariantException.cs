using System.Diagnostics.CodeAnalysis;
using System.Runtime.CompilerServices;

namespace Kahuna.Server.Primitives;

/// <summary>A rule of the program itself is broken: a bug of ours. It stops the group; nothing catches it to go on.</summary>
internal sealed class InvariantException(string message) : Exception(message)
{
    /// <summary>Throws when <paramref name="holds"/> is false; also in release builds.</summary>
    public static void Require([DoesNotReturnIf(false)] bool holds, string rule, [CallerFilePath] string file = "", [CallerLineNumber] int line = 0)
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
