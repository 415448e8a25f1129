using System.Text;
using System.Text.Unicode;
using Kahuna.Wire.Buffers;

namespace Kahuna.Wire.Scripts;

/// <summary>
/// One value of the script language. Text is held as UTF-8, so that no operation on it depends on a culture. Immutable,
/// any thread; the bytes that it was made from must not change.
/// </summary>
internal sealed class ScriptValue
{
    /// <summary>Arrays inside arrays; an array of scalars has the depth 1.</summary>
    public const int NestingMax = 16;

    /// <summary>The revision of an entry whose write is not committed yet.</summary>
    public const long UnknownRevision = 0;

    /// <summary>The remaining time of an entry that does not expire.</summary>
    public const long NeverExpires = -1;

    /// <summary>What a value costs besides its content: its object and the reference to it.</summary>
    private const int ObjectBytes = 64;

    private static readonly ScriptValue s_true = new(ScriptValueKind.Bool) { _number = 1 };
    private static readonly ScriptValue s_false = new(ScriptValueKind.Bool);
    private static readonly UTF8Encoding s_strict = new(false, throwOnInvalidBytes: true);

    private long _number;
    private ReadOnlyMemory<byte> _bytes;
    private readonly ScriptValue[] _items = [];
    private readonly EntryFields? _entry;
    private string? _text;

    private ScriptValue(ScriptValueKind kind) => Kind = kind;

    /// <summary>The absence of a value.</summary>
    public static ScriptValue Null { get; } = new(ScriptValueKind.Null);

    /// <summary>The type of this value.</summary>
    public ScriptValueKind Kind { get; }

    /// <summary>Arrays below each other: 0 for all but arrays.</summary>
    public int Depth { get; private init; }

    /// <summary>
    /// Bytes that this value is charged with. Items that appear several times count several times. So the encoding of a
    /// value is never longer than its cost.
    /// </summary>
    public long Cost { get; private init; } = ObjectBytes;

    /// <summary>The boolean.</summary>
    public bool AsBool => Require(ScriptValueKind.Bool)._number != 0;

    /// <summary>The integer.</summary>
    public long AsInteger => Require(ScriptValueKind.Integer)._number;

    /// <summary>The double; always finite.</summary>
    public double AsDouble => BitConverter.Int64BitsToDouble(Require(ScriptValueKind.Double)._number);

    /// <summary>The text of a string.</summary>
    public string AsString => _text ??= Encoding.UTF8.GetString(Require(ScriptValueKind.String)._bytes.Span);

    /// <summary>The bytes; of a string its UTF-8.</summary>
    public ReadOnlyMemory<byte> AsBytes =>
        Kind == ScriptValueKind.String ? _bytes : Require(ScriptValueKind.Bytes)._bytes;

    /// <summary>The items of an array.</summary>
    public IReadOnlyList<ScriptValue> Items => Require(ScriptValueKind.Array)._items;

    /// <summary>The key of an entry.</summary>
    public string Key => Entry.Key;

    /// <summary>The revision of an entry, or <see cref="UnknownRevision"/>.</summary>
    public long Revision => Entry.Revision;

    /// <summary>Milliseconds until an entry expires, or <see cref="NeverExpires"/>.</summary>
    public long ExpiresInMs => Entry.ExpiresInMs;

    /// <summary>The value of an entry: a string, bytes or null.</summary>
    public ScriptValue Value => Entry.Value;

    /// <summary>This value as an expression sees it: of an entry its value.</summary>
    public ScriptValue Plain => _entry is null ? this : _entry.Value;

    private EntryFields Entry => _entry ?? throw Wrong(ScriptValueKind.Entry);

    /// <summary>A boolean.</summary>
    public static ScriptValue Of(bool value) => value ? s_true : s_false;

    /// <summary>An integer.</summary>
    public static ScriptValue Of(long value) => new(ScriptValueKind.Integer) { _number = value };

    /// <summary>A double.</summary>
    /// <exception cref="ArgumentException">The double is not finite.</exception>
    public static ScriptValue Of(double value) => double.IsFinite(value)
        ? new ScriptValue(ScriptValueKind.Double) { _number = BitConverter.DoubleToInt64Bits(value) }
        : throw new ArgumentException("A double of a script must be finite.", nameof(value));

    /// <summary>A string.</summary>
    /// <exception cref="ArgumentException">The string has an unpaired surrogate.</exception>
    public static ScriptValue Of(string value) => OfText(s_strict.GetBytes(value));

    /// <summary>Bytes, which stay bytes even when they are valid UTF-8.</summary>
    public static ScriptValue Of(ReadOnlyMemory<byte> bytes) =>
        new(ScriptValueKind.Bytes) { _bytes = bytes, Cost = ObjectBytes + bytes.Length };

    /// <summary>An array, which owns <paramref name="items"/> from now on.</summary>
    /// <exception cref="ArgumentException">Arrays are nested deeper than <see cref="NestingMax"/>.</exception>
    public static ScriptValue Of(ScriptValue[] items)
    {
        int depth = 1;
        long cost = ObjectBytes;
        foreach (ScriptValue item in items)
        {
            depth = Math.Max(depth, item.Depth + 1);
            cost += item.Cost;
        }

        return depth > NestingMax
            ? throw new ArgumentException("Arrays are nested too deep.", nameof(items))
            : new ScriptValue(ScriptValueKind.Array, items) { Depth = depth, Cost = cost };
    }

    /// <summary>A string from its UTF-8, which the caller knows to be valid.</summary>
    public static ScriptValue OfText(ReadOnlyMemory<byte> utf8) =>
        new(ScriptValueKind.String) { _bytes = utf8, Cost = ObjectBytes + utf8.Length };

    /// <summary>What the store holds: a string if the bytes are valid UTF-8, else bytes.</summary>
    public static ScriptValue OfStored(ReadOnlyMemory<byte> bytes) =>
        Utf8.IsValid(bytes.Span) ? OfText(bytes) : Of(bytes);

    /// <summary>A value that a read returned.</summary>
    /// <param name="key">The key.</param>
    /// <param name="value">The bytes in the store; null for a null value.</param>
    /// <param name="revision">The revision, or <see cref="UnknownRevision"/>.</param>
    /// <param name="expiresInMs">The remaining time, or <see cref="NeverExpires"/>.</param>
    public static ScriptValue OfEntry(string key, ReadOnlyMemory<byte>? value, long revision, long expiresInMs)
    {
        ScriptValue stored = value is { } bytes ? OfStored(bytes) : Null;
        return new ScriptValue(new EntryFields(key, revision, expiresInMs, stored))
        {
            Cost = ObjectBytes + Encoding.UTF8.GetByteCount(key) + stored.Cost,
        };
    }

    /// <summary>Appends the encoding, which <see cref="TryRead"/> reads.</summary>
    public void Write(ByteBuffer target) => ScriptValueFormat.Write(this, target);

    /// <summary>
    /// Reads one encoded value and moves <paramref name="source"/> behind it. False for malformed input, arrays nested
    /// deeper than <see cref="NestingMax"/>, and more than <see cref="ScriptValueFormat.BytesMax"/> bytes. Never
    /// throws, and allocates in proportion to the input.
    /// </summary>
    public static bool TryRead(ref ReadOnlySpan<byte> source, out ScriptValue value) =>
        ScriptValueFormat.TryRead(ref source, out value);

    private ScriptValue(ScriptValueKind kind, ScriptValue[] items)
        : this(kind) => _items = items;

    private ScriptValue(EntryFields entry)
        : this(ScriptValueKind.Entry) => _entry = entry;

    private ScriptValue Require(ScriptValueKind kind) => Kind == kind ? this : throw Wrong(kind);

    private InvalidOperationException Wrong(ScriptValueKind kind) =>
        new($"The value of the script is of type {Kind}, not {kind}.");

    /// <summary>What an entry has besides its type. Immutable.</summary>
    private sealed record EntryFields(string Key, long Revision, long ExpiresInMs, ScriptValue Value);
}
