using System.Globalization;
using System.Text;
using Kahuna.Client.Outcomes;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Scripts;

namespace Kahuna.Client.Scripts;

/// <summary>
/// A value that a script returned. Immutable. What the store holds is a string when its bytes are valid UTF-8, and
/// bytes otherwise; a key that a script has read also has its name, revision and remaining time.
/// </summary>
public sealed class ScriptResult
{
    private readonly ScriptValue _value;

    /// <summary>The key with what was read of it; null for a value that a script has made.</summary>
    private readonly ScriptValue? _entry;

    private ScriptResult(ScriptValue value)
    {
        bool isEntry = value.Kind == ScriptValueKind.Entry;
        _value = isEntry ? value.Value : value;
        _entry = isEntry ? value : null;
        Items = _value.Kind == ScriptValueKind.Array ? [.. _value.Items.Select(static item => new ScriptResult(item))]
            : [];
    }

    /// <summary>The type of the value.</summary>
    public ScriptResultKind Kind => (ScriptResultKind)_value.Kind;

    /// <summary>True for null.</summary>
    public bool IsNull => _value.Kind == ScriptValueKind.Null;

    /// <summary>The elements of an array; empty for other kinds.</summary>
    public IReadOnlyList<ScriptResult> Items { get; }

    /// <summary>The name of the key that the value was read from; null when it was not read.</summary>
    public string? Key => _entry?.Key;

    /// <summary>The revision that was read; none when the value was not read.</summary>
    public Revision Revision => _entry is null ? Revision.None : new Revision(_entry.Revision);

    /// <summary>How long the key has to live; null when it has no end or the value was not read.</summary>
    public TimeSpan? ExpiresIn =>
        _entry is { ExpiresInMs: >= 0 } entry ? TimeSpan.FromMilliseconds(entry.ExpiresInMs) : null;

    /// <summary>The boolean.</summary>
    /// <exception cref="InvalidOperationException">It is of another kind.</exception>
    public bool AsBool() => Of(ScriptValueKind.Bool).AsBool;

    /// <summary>The integer.</summary>
    /// <inheritdoc cref="AsBool"/>
    public long AsInteger() => Of(ScriptValueKind.Integer).AsInteger;

    /// <summary>The double, or the integer as one.</summary>
    /// <inheritdoc cref="AsBool"/>
    public double AsDouble() =>
        _value.Kind == ScriptValueKind.Integer ? _value.AsInteger : Of(ScriptValueKind.Double).AsDouble;

    /// <summary>The string.</summary>
    /// <inheritdoc cref="AsBool"/>
    public string AsString() => Of(ScriptValueKind.String).AsString;

    /// <summary>The bytes; of a string its UTF-8.</summary>
    /// <inheritdoc cref="AsBool"/>
    public ReadOnlyMemory<byte> AsBytes() =>
        _value.Kind == ScriptValueKind.String ? Encoding.UTF8.GetBytes(_value.AsString)
            : Of(ScriptValueKind.Bytes).AsBytes;

    /// <summary>A text for people: strings as they are, arrays in brackets.</summary>
    public override string ToString() => _value.Kind switch
    {
        ScriptValueKind.Null => "null",
        ScriptValueKind.Bool => _value.AsBool ? "true" : "false",
        ScriptValueKind.Integer => _value.AsInteger.ToString(CultureInfo.InvariantCulture),
        ScriptValueKind.Double => _value.AsDouble.ToString("R", CultureInfo.InvariantCulture),
        ScriptValueKind.String => _value.AsString,
        ScriptValueKind.Bytes => Convert.ToHexString(_value.AsBytes.Span),
        _ => $"[{string.Join(", ", Items)}]",
    };

    internal static ScriptResult Of(ScriptValue value) => new(value);

    internal static ScriptResult Read(ReadOnlyMemory<byte> bytes)
    {
        ReadOnlySpan<byte> rest = bytes.Span;
        return ScriptValue.TryRead(ref rest, out ScriptValue value) && rest.IsEmpty
            ? new ScriptResult(value)
            : throw OperationErrors.UnknownDescription("a script's result");
    }

    private ScriptValue Of(ScriptValueKind kind) => _value.Kind == kind
        ? _value
        : throw new InvalidOperationException($"The script returned {_value.Kind}, not {kind}.");
}

/// <summary>The type of a value that a script returned.</summary>
public enum ScriptResultKind
{
    /// <summary>Null.</summary>
    Null = 0,

    /// <summary>A boolean.</summary>
    Bool = 1,

    /// <summary>A signed 64-bit integer.</summary>
    Integer = 2,

    /// <summary>A double.</summary>
    Double = 3,

    /// <summary>A string.</summary>
    String = 4,

    /// <summary>Bytes.</summary>
    Bytes = 5,

    /// <summary>An array.</summary>
    Array = 6,
}

/// <summary>The reply to a script. Immutable.</summary>
internal readonly record struct ScriptReply : IOperationResult<ScriptReply>
{
    /// <summary>The encoded value.</summary>
    public ReadOnlyMemory<byte> Result { get; init; }

    /// <summary>
    /// Why nothing was done: the script needs more than one partition has, or may use. Null: it was run.
    /// </summary>
    public KahunaException? TooWide { get; init; }

    static ScriptReply IOperationResult<ScriptReply>.From(Answer answer) => answer switch
    {
        { Status: OutcomeStatus.Applied, Value: { } value } => new ScriptReply { Result = value.Memory },
        {
            Status: OutcomeStatus.ScriptFailed,
            ReplyNumber: ScriptEnds.TooWide or ScriptEnds.NotAllowedHere,
        } => new ScriptReply { TooWide = OperationErrors.ScriptFailed(answer) },
        { Status: OutcomeStatus.ScriptFailed } => throw OperationErrors.ScriptFailed(answer),
        { Status: OutcomeStatus.FenceFailed } => throw OperationErrors.NotHeld(answer),
        _ => throw OperationErrors.UnexpectedStatus(answer),
    };
}
