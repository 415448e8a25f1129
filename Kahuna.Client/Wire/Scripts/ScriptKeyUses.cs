using System.Text;

namespace Kahuna.Wire.Scripts;

/// <summary>
/// Collects what the text of a script says about the keys that it will use. One owner, not thread-safe.
/// </summary>
internal sealed class ScriptKeyUses
{
    private readonly List<ScriptKey> _keys = [];

    /// <summary>The keys that are named, in order of appearance.</summary>
    public IReadOnlyList<ScriptKey> Keys => _keys;

    /// <summary>Some key is only known at run time.</summary>
    public bool HasComputed { get; private set; }

    /// <summary>Some statement is about persistent keys.</summary>
    public bool HasPersistent { get; private set; }

    /// <summary>Some statement is about ephemeral keys.</summary>
    public bool HasEphemeral { get; private set; }

    /// <summary>Some statement reads by prefix, and so in all partitions.</summary>
    public bool HasPrefixes { get; private set; }

    /// <summary>Some statement writes.</summary>
    public bool HasWrites { get; private set; }

    /// <summary>Notes one data statement.</summary>
    public void Add(ScriptAccess kind, bool isEphemeral, ScriptExpression key)
    {
        HasPersistent |= !isEphemeral;
        HasEphemeral |= isEphemeral;
        HasWrites |= kind is ScriptAccess.Set or ScriptAccess.Delete or ScriptAccess.Extend;
        if (kind == ScriptAccess.Prefix)
        {
            HasPrefixes = true;
            return;
        }

        (int line, int column) = (key.Position.Line, key.Position.Column);
        bool isBucket = kind == ScriptAccess.Bucket;
        switch (key)
        {
            case LiteralExpression { Value.Kind: ScriptValueKind.String } literal:
                _keys.Add(new ScriptKey(literal.Value.AsString, null, isEphemeral, isBucket, line, column));
                break;
            case ParameterExpression parameter:
                _keys.Add(new ScriptKey(null, parameter.Name, isEphemeral, isBucket, line, column));
                break;
            default:
                HasComputed = true;
                break;
        }
    }

    /// <summary>Why a name cannot be a key, or null; in words that fit behind "expected".</summary>
    public static string? Refusal(ReadOnlySpan<byte> name, ScriptAccess kind)
    {
        int bytesMin = kind == ScriptAccess.Prefix ? 0 : 1;
        if (name.Length < bytesMin || name.Length > Limits.KeyBytesMax)
        {
            return kind == ScriptAccess.Prefix
                ? "a prefix of at most 1,024 bytes"
                : "a key of 1 to 1,024 bytes";
        }

        return name.StartsWith(Limits.ReservedPrefix)
            ? "a key that does not begin with __kahuna, which is reserved for the system"
            : null;
    }

    /// <inheritdoc cref="Refusal(ReadOnlySpan{byte}, ScriptAccess)"/>
    public static string? Refusal(string name, ScriptAccess kind) => Refusal(Encoding.UTF8.GetBytes(name), kind);
}
