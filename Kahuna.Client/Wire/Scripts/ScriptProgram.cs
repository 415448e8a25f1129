using System.Globalization;
using System.Text;
using Kahuna.Wire.Commands;

namespace Kahuna.Wire.Scripts;

/// <summary>A parsed script. Immutable, any thread.</summary>
internal sealed class ScriptProgram
{
    /// <summary>Longest text in bytes of UTF-8.</summary>
    public const int TextBytesMax = 65_536;

    /// <summary>Blocks, parentheses, brackets and unary operators inside each other.</summary>
    public const int NestingMax = 128;

    private ScriptProgram(IReadOnlyList<ScriptStatement> body, ScriptKeyUses uses, FeatureLevel level)
    {
        Level = level;
        Body = body;
        Keys = uses.Keys;
        HasComputedKeys = uses.HasComputed;
        UsesPersistent = uses.HasPersistent;
        UsesEphemeral = uses.HasEphemeral;
        ScansPrefixes = uses.HasPrefixes;
        Writes = uses.HasWrites;
    }

    /// <summary>The statements.</summary>
    public IReadOnlyList<ScriptStatement> Body { get; }

    /// <summary>The lowest feature level that has all of its words.</summary>
    public FeatureLevel Level { get; }

    /// <summary>
    /// The keys and buckets that stand in the text as a literal, identifier, back-ticked name or parameter, in order of
    /// appearance. Prefixes are not among them.
    /// </summary>
    public IReadOnlyList<ScriptKey> Keys { get; }

    /// <summary>Some key or bucket is an expression, known only at run time.</summary>
    public bool HasComputedKeys { get; }

    /// <summary>Some statement is about persistent keys.</summary>
    public bool UsesPersistent { get; }

    /// <summary>Some statement is about ephemeral keys.</summary>
    public bool UsesEphemeral { get; }

    /// <summary>Some statement reads by prefix, and so in all partitions.</summary>
    public bool ScansPrefixes { get; }

    /// <summary>Some statement sets, deletes or extends.</summary>
    public bool Writes { get; }

    /// <summary>Parses a text in the language of this release.</summary>
    /// <exception cref="ScriptSyntaxException">The text is not a script, or longer than allowed.</exception>
    public static ScriptProgram Parse(string text) => Parse(text, ScriptLanguage.Newest);

    /// <summary>Parses a text.</summary>
    /// <exception cref="ScriptSyntaxException">The text is not a script, or longer than allowed.</exception>
    public static ScriptProgram Parse(string text, ScriptLanguage language)
    {
        CheckText(text);
        ScriptParser parser = new(text, language);
        return new ScriptProgram(parser.Parse(), parser.Uses, parser.Level);
    }

    private static void CheckText(string text)
    {
        int bytes = text.Length > TextBytesMax ? text.Length : Encoding.UTF8.GetByteCount(text);
        if (bytes > TextBytesMax)
        {
            throw ScriptSyntaxException.Expected(
                new ScriptPosition(1, 1),
                "a text of at most 65,536 bytes",
                string.Create(CultureInfo.InvariantCulture, $"at least {bytes:N0}"));
        }

        ScriptReader reader = new(text);
        while (!reader.IsAtEnd)
        {
            bool isPair = char.IsSurrogatePair(reader.Next, reader.At(1));
            if (char.IsSurrogate(reader.Next) && !isPair)
            {
                throw ScriptSyntaxException.Expected(
                    reader.Position, "valid Unicode", "half of a surrogate pair");
            }

            reader.Skip(isPair ? 2 : 1);
        }
    }
}
