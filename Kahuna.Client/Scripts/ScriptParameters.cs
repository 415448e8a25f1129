using System.Collections;
using Kahuna.Wire.Scripts;

namespace Kahuna.Client.Scripts;

/// <summary>
/// The values of a script's <c>@names</c>, by name without the <c>@</c>. At most 256, with names of at most 64 bytes
/// and 1 MiB together. Not thread-safe while it is being filled.
/// <code>
/// new ScriptParameters { ["account"] = "accounts/a", ["amount"] = 10 }
/// </code>
/// </summary>
public sealed class ScriptParameters : IEnumerable<KeyValuePair<string, ScriptArgument>>
{
    private readonly Dictionary<string, ScriptArgument> _byName = new(StringComparer.Ordinal);

    /// <summary>Sets a parameter.</summary>
    public ScriptArgument this[string name]
    {
        get => _byName[name];
        set => _byName[name] = value;
    }

    /// <summary>Adds a parameter.</summary>
    /// <exception cref="ArgumentException">It is there already.</exception>
    public void Add(string name, ScriptArgument value) => _byName.Add(name, value);

    /// <inheritdoc/>
    public IEnumerator<KeyValuePair<string, ScriptArgument>> GetEnumerator() => _byName.GetEnumerator();

    IEnumerator IEnumerable.GetEnumerator() => GetEnumerator();

    internal List<ScriptParameter> ToList()
    {
        List<ScriptParameter> list = new(_byName.Count);
        foreach ((string name, ScriptArgument argument) in _byName)
        {
            list.Add(new ScriptParameter(name, argument.Value));
        }

        return list;
    }
}

/// <summary>The value of one parameter of a script. Strings, numbers, booleans and bytes convert to it.</summary>
public readonly struct ScriptArgument
{
    private readonly ScriptValue? _value;

    private ScriptArgument(ScriptValue value) => _value = value;

    /// <summary>The null value, which is the default one as well.</summary>
    public static ScriptArgument Null => default;

    internal ScriptValue Value => _value ?? ScriptValue.Null;

    /// <summary>A string; null gives the null value.</summary>
    public static implicit operator ScriptArgument(string? value) =>
        value is null ? default : new(ScriptValue.Of(value));

    /// <summary>An integer.</summary>
    public static implicit operator ScriptArgument(long value) => new(ScriptValue.Of(value));

    /// <summary>A finite double.</summary>
    /// <exception cref="ArgumentOutOfRangeException">It is NaN or infinite.</exception>
    public static implicit operator ScriptArgument(double value) => double.IsFinite(value)
        ? new(ScriptValue.Of(value))
        : throw new ArgumentOutOfRangeException(nameof(value), value, "a script has finite doubles only");

    /// <summary>A boolean.</summary>
    public static implicit operator ScriptArgument(bool value) => new(ScriptValue.Of(value));

    /// <summary>Bytes, which are not copied: leave them unchanged until the call has ended.</summary>
    public static implicit operator ScriptArgument(byte[] value) => new(ScriptValue.Of((ReadOnlyMemory<byte>)value));

    /// <inheritdoc cref="op_Implicit(byte[])"/>
    public static implicit operator ScriptArgument(ReadOnlyMemory<byte> value) => new(ScriptValue.Of(value));
}
