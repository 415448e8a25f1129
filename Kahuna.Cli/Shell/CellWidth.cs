using System.Globalization;
using System.Text;
using Kahuna.Cli.Terminal;

namespace Kahuna.Cli.Shell;

/// <summary>
/// How many columns of a terminal a text takes: Chinese, Japanese and Korean letters and emoji take two, accents none.
/// Static, any thread.
/// </summary>
internal static class CellWidth
{
    /// <summary>Ranges of wide code points (Unicode Standard Annex 11), in order; blocks are taken whole.</summary>
    private static readonly (int First, int Last)[] s_wide =
    [
        (0x1100, 0x115F), (0x231A, 0x231B), (0x23E9, 0x23EC), (0x25FD, 0x25FE), (0x2614, 0x2615), (0x2648, 0x2653),
        (0x26AA, 0x26AB), (0x26BD, 0x26BE), (0x26C4, 0x26C5), (0x26D4, 0x26D4), (0x2705, 0x2705), (0x270A, 0x270B),
        (0x274C, 0x274C), (0x2753, 0x2755), (0x2795, 0x2797), (0x2B1B, 0x2B1C), (0x2B50, 0x2B50), (0x2E80, 0x303E),
        (0x3041, 0xA4CF), (0xA960, 0xA97F), (0xAC00, 0xD7A3), (0xF900, 0xFAFF), (0xFE30, 0xFE6F), (0xFF01, 0xFF60),
        (0xFFE0, 0xFFE6), (0x1F004, 0x1F004), (0x1F0CF, 0x1F0CF), (0x1F18E, 0x1F18E), (0x1F191, 0x1F19A),
        (0x1F200, 0x1F320), (0x1F32D, 0x1F335), (0x1F337, 0x1F37C), (0x1F37E, 0x1F393), (0x1F3A0, 0x1F3CA),
        (0x1F3E0, 0x1F3F0), (0x1F400, 0x1F43E), (0x1F440, 0x1F440), (0x1F442, 0x1F4FC), (0x1F4FF, 0x1F53D),
        (0x1F550, 0x1F567), (0x1F5FB, 0x1F64F), (0x1F680, 0x1F6C5), (0x1F6D0, 0x1F6DF), (0x1F6EB, 0x1F6FF),
        (0x1F7E0, 0x1F7EB), (0x1F90C, 0x1FAFF), (0x20000, 0x3FFFD),
    ];

    /// <summary>The columns of a text that is shown as it is.</summary>
    public static int Of(string text)
    {
        int width = 0;
        TextElementEnumerator elements = StringInfo.GetTextElementEnumerator(text);
        while (elements.MoveNext())
        {
            width += OfElement(elements.GetTextElement());
        }

        return width;
    }

    /// <summary>What stands for a letter and its accents on the screen: escaped when it acts on the terminal.</summary>
    public static string Shown(string element) => element == "\\" ? element : ShownText.Of(element);

    /// <summary>The columns of one letter with its accents.</summary>
    private static int OfElement(string element)
    {
        int width = 0;
        foreach (Rune rune in element.EnumerateRunes())
        {
            width = Math.Max(width, OfRune(rune));
        }

        return width;
    }

    private static int OfRune(Rune rune) => Rune.GetUnicodeCategory(rune) switch
    {
        UnicodeCategory.NonSpacingMark or UnicodeCategory.EnclosingMark or UnicodeCategory.Format
            or UnicodeCategory.Control => 0,
        _ => Array.Exists(s_wide, range => rune.Value >= range.First && rune.Value <= range.Last) ? 2 : 1,
    };
}
