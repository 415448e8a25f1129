using System.Text;

namespace Kahuna.Wire.Scripts;

/// <summary>The characters of a script with the place of the next one. One owner, not thread-safe.</summary>
internal sealed class ScriptReader(string text)
{
    private int _line = 1;
    private int _column = 1;

    /// <summary>Index of the next character.</summary>
    public int Index { get; private set; }

    /// <summary>The place of the next character.</summary>
    public ScriptPosition Position => new(_line, _column);

    /// <summary>The next character, or NUL at the end.</summary>
    public char Next => At(0);

    /// <summary>No character is left.</summary>
    public bool IsAtEnd => Index >= text.Length;

    /// <summary>A character further on, or NUL behind the end.</summary>
    public char At(int ahead) => Index + ahead < text.Length ? text[Index + ahead] : '\0';

    /// <summary>The text from <paramref name="start"/> to here.</summary>
    public ReadOnlySpan<char> Since(int start) => text.AsSpan(start, Index - start);

    /// <summary>Goes on by one character; the second half of a surrogate pair is no column.</summary>
    public void Skip()
    {
        char passed = text[Index++];
        if (passed == '\n')
        {
            _line++;
            _column = 1;
        }
        else if (!char.IsLowSurrogate(passed))
        {
            _column++;
        }
    }

    /// <summary>Goes on by some characters.</summary>
    public void Skip(int count)
    {
        for (int i = 0; i < count; i++)
        {
            Skip();
        }
    }

    /// <summary>What an error says that it found here.</summary>
    public string Found() => IsAtEnd ? "the end of the script" : Quote(NextCharacter());

    /// <summary>Text in quotes, cut to 40 characters, with control characters as <c>\u{H}</c>.</summary>
    public static string Quote(ReadOnlySpan<char> found)
    {
        const int CharactersMax = 40;
        StringBuilder quoted = new("'");
        int taken = 0;
        foreach (Rune rune in found.EnumerateRunes())
        {
            if (taken++ == CharactersMax)
            {
                quoted.Append('…');
                break;
            }

            if (rune.Value is < 0x20 or 0x7F)
            {
                quoted.Append("\\u{").Append(Convert.ToHexString([(byte)rune.Value])).Append('}');
            }
            else
            {
                quoted.Append(rune);
            }
        }

        return quoted.Append('\'').ToString();
    }

    private ReadOnlySpan<char> NextCharacter() =>
        text.AsSpan(Index, char.IsSurrogatePair(Next, At(1)) ? 2 : 1);
}
