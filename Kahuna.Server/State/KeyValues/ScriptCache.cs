using System.Text;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Routing;
using Kahuna.Wire.Scripts;
using Kahuna.Wire.Scripts.Running;

namespace Kahuna.Server.State.KeyValues;

/// <summary>
/// Scripts that were compiled lately, by their text, in the language of the entry that is applied
/// (<see cref="KeyStore.Level"/>). What it holds changes no result, only when a text is parsed. Owned by one
/// <see cref="ScriptRunner"/>; not thread-safe.
/// </summary>
internal sealed class ScriptCache(KeyStore store)
{
    /// <summary>Texts that are kept; when there are more, all go and those in use come back.</summary>
    private const int TextsMax = 256;

    /// <summary>Bytes of texts that are kept. The code of a text is some ten times as large.</summary>
    private const int BytesMax = 256 * 1024;

    private readonly Dictionary<ulong, CompiledScript> _byHash = [];
    private int _bytes;

    /// <summary>The language that the scripts are compiled in; null: there are none yet.</summary>
    private ScriptLanguage? _language;

    /// <summary>The script of a text.</summary>
    public CompiledScript Find(ReadOnlySpan<byte> text)
    {
        ScriptLanguage language = LanguageOfEntry();
        ulong hash = XxHash64.Hash(text, 0);
        if (!_byHash.TryGetValue(hash, out CompiledScript? found) || !text.SequenceEqual(found.Text))
        {
            found = Compile(text.ToArray(), language);
            Keep(hash, found);
        }

        return found;
    }

    /// <summary>The most steps that a text has taken; null when it is not here.</summary>
    public int? StepsOf(ReadOnlySpan<byte> text) =>
        _byHash.TryGetValue(XxHash64.Hash(text, 0), out CompiledScript? found) && text.SequenceEqual(found.Text)
            ? found.StepsMax
            : null;

    /// <summary>
    /// The language at the level of the entry, whatever words this build has: every replica compiles a text to the same
    /// code, or to the same error. A text may mean something else at another level, so all are compiled anew.
    /// </summary>
    private ScriptLanguage LanguageOfEntry()
    {
        if (_language is not null && _language.Level == store.Level)
        {
            return _language;
        }

        Clear();
        _language = store.ScriptWords.At(store.Level);
        return _language;
    }

    private CompiledScript Compile(byte[] text, ScriptLanguage language)
    {
        try
        {
            ScriptProgram program = ScriptProgram.Parse(Encoding.UTF8.GetString(text), language);
            InvariantException.Require(program.Level <= store.Level, "a script has only words of its entry's level");
            return new(text, ScriptCode.Compile(program), "");
        }
        catch (ScriptSyntaxException wrong)
        {
            return new(text, null, wrong.Message + "; nothing was applied");
        }
    }

    private void Keep(ulong hash, CompiledScript compiled)
    {
        if (_byHash.Count >= TextsMax || _bytes + compiled.Text.Length > BytesMax)
        {
            Clear();
        }

        _byHash[hash] = compiled;
        _bytes += compiled.Text.Length;
    }

    private void Clear()
    {
        _byHash.Clear();
        _bytes = 0;
    }
}

/// <summary>
/// A text with its code, or with the reason why it has none. Owned by one <see cref="ScriptCache"/>; not thread-safe.
/// </summary>
internal sealed record CompiledScript(byte[] Text, ScriptCode? Code, string Error)
{
    /// <summary>The most steps that a run has taken.</summary>
    public int StepsMax { get; set; } = 1;
}
