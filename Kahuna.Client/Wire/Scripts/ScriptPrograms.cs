using System.Collections.Concurrent;

namespace Kahuna.Wire.Scripts;

/// <summary>Texts that were parsed lately, so that a script in use is parsed once. Any thread.</summary>
internal sealed class ScriptPrograms
{
    /// <summary>
    /// Characters of the texts that are kept; with more, all go and those in use come back. A parsed text takes some
    /// ten times its size.
    /// </summary>
    private const int CharsMax = 1 << 20;

    private readonly ConcurrentDictionary<string, ScriptProgram> _programs = new(StringComparer.Ordinal);
    private int _chars;

    /// <summary>The parsed text.</summary>
    /// <exception cref="ScriptSyntaxException">It is no script.</exception>
    public ScriptProgram Parse(string text)
    {
        if (_programs.TryGetValue(text, out ScriptProgram? known))
        {
            return known;
        }

        ScriptProgram program = ScriptProgram.Parse(text);
        if (Interlocked.Add(ref _chars, text.Length) > CharsMax)
        {
            _programs.Clear();
            Volatile.Write(ref _chars, text.Length);
        }

        _programs[text] = program;
        return program;
    }
}
