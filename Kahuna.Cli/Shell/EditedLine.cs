using System.Globalization;
using System.Text;

namespace Kahuna.Cli.Shell;

/// <summary>
/// A line that is typed, and the place of the cursor in it. The cursor moves by letters as people see them, with their
/// accents. Not thread-safe.
/// </summary>
internal sealed class EditedLine
{
    /// <summary>Characters of a line at most: a value of 1 MiB fits. What is typed above is left out.</summary>
    public const int LengthMax = 3 << 20;

    /// <summary>The line.</summary>
    public string Text { get; private set; } = "";

    /// <summary>Characters of <see cref="Text"/> before the cursor.</summary>
    public int Cursor { get; private set; }

    /// <summary>Replaces the line; the cursor is at its end.</summary>
    public void Set(string text)
    {
        Text = text;
        Cursor = text.Length;
    }

    /// <summary>
    /// Inserts what was typed or pasted. Line breaks and tabs become blanks, so that nothing runs before Enter; other
    /// control characters are left out.
    /// </summary>
    public void Insert(string text)
    {
        StringBuilder plain = new();
        foreach (Rune rune in text.ReplaceLineEndings(" ").EnumerateRunes())
        {
            if (rune.Value == '\t')
            {
                plain.Append(' ');
            }
            else if (!Rune.IsControl(rune))
            {
                plain.Append(rune);
            }
        }

        if (Text.Length + plain.Length <= LengthMax)
        {
            Text = Text.Insert(Cursor, plain.ToString());
            Cursor += plain.Length;
        }
    }

    /// <summary>Replaces a part before the cursor.</summary>
    /// <param name="start">Where the part begins; it ends at the cursor.</param>
    /// <param name="text">What stands there afterwards.</param>
    public void ReplaceBack(int start, string text)
    {
        Text = Text[..start] + text + Text[Cursor..];
        Cursor = start + text.Length;
    }

    public void Left() => Cursor = Before(Cursor);

    public void Right() => Cursor = Behind(Cursor);

    public void Home() => Cursor = 0;

    public void End() => Cursor = Text.Length;

    public void WordLeft() => Cursor = WordStart();

    public void WordRight()
    {
        while (Cursor < Text.Length && char.IsWhiteSpace(Text[Cursor]))
        {
            Cursor++;
        }

        while (Cursor < Text.Length && !char.IsWhiteSpace(Text[Cursor]))
        {
            Cursor++;
        }
    }

    /// <summary>Deletes the letter before the cursor.</summary>
    public void Backspace() => DeleteBack(Before(Cursor));

    /// <summary>Deletes the letter at the cursor.</summary>
    public void Delete() => Text = Text.Remove(Cursor, Behind(Cursor) - Cursor);

    public void DeleteToEnd() => Text = Text[..Cursor];

    public void DeleteToStart() => DeleteBack(0);

    /// <summary>Deletes the word before the cursor, with the blanks behind it.</summary>
    public void DeleteWord() => DeleteBack(WordStart());

    private void DeleteBack(int start) => ReplaceBack(start, "");

    private int WordStart()
    {
        int at = Cursor;
        while (at > 0 && char.IsWhiteSpace(Text[at - 1]))
        {
            at--;
        }

        while (at > 0 && !char.IsWhiteSpace(Text[at - 1]))
        {
            at--;
        }

        return at;
    }

    private int Behind(int at) =>
        at == Text.Length ? at : at + StringInfo.GetNextTextElementLength(Text.AsSpan(at));

    /// <summary>Letters are found from the left; no letter with its accents is longer than this part.</summary>
    private int Before(int at)
    {
        const int Part = 64;
        int begin = Math.Max(0, at - Part);
        int last = begin;
        while (begin < at)
        {
            last = begin;
            begin += StringInfo.GetNextTextElementLength(Text.AsSpan(begin, at - begin));
        }

        return last;
    }
}
