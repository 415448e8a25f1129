using System.Text;
using Kahuna.Wire.Routing;
using Kahuna.Wire.Scripts;
using Kahuna.Wire.Scripts.Running;

namespace Kahuna.Server.State.KeyValues;

/// <summary>
/// Scripts that were compiled lately, by their text. What it holds changes no result, only when a text is parsed.
/// Owned by one <see cref="ScriptRunner"/>; not thread-safe.
/// </summary>
internal sealed class ScriptCache
{
    /// <summary>Texts that are kept; when there are more, all go and those in use come back.</summary>
    private const int TextsMax = 256;

    /// <summary>Bytes of texts that are kept. The code of a text is some ten times as large.</summary>
    private const int BytesMax = 256 * 1024;

    private readonly Dictionary<ulong, CompiledScript> _byHash = [];
    private int _bytes;

    /// <summary>The script of a text.</summary>
    public CompiledScript Find(ReadOnlySpan<byte> text)
    {
        ulong hash = XxHash64.Hash(text, 0);
        if (!_byHash.TryGetValue(hash, out CompiledScript? found) || !text.SequenceEqual(found.Text))
        {
            found = Compile(text.ToArray());
            Keep(hash, found);
        }

        return found;
    }

    /// <summary>The most steps that a text has taken; null when it is not here.</summary>
    public int? StepsOf(ReadOnlySpan<byte> text) =>
        _byHash.TryGetValue(XxHash64.Hash(text, 0), out CompiledScript? found) && text.SequenceEqual(found.Text)
            ? found.StepsMax
            : null;

    private static CompiledScript Compile(byte[] text)
    {
        try
        {
            return new(text, ScriptCode.Compile(ScriptProgram.Parse(Encoding.UTF8.GetString(text))), "");
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
            _byHash.Clear();
            _bytes = 0;
        }

        _byHash[hash] = compiled;
        _bytes += compiled.Text.Length;
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
