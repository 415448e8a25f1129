namespace Kahuna.Wire.Scripts;

/// <summary>A part of a script that gives a value. The family below is closed. Immutable.</summary>
/// <param name="Position">Where it begins.</param>
internal abstract record ScriptExpression(ScriptPosition Position);

/// <summary>A value that stands in the text.</summary>
internal sealed record LiteralExpression(ScriptPosition Position, ScriptValue Value) : ScriptExpression(Position);

/// <summary><c>@name</c>.</summary>
internal sealed record ParameterExpression(ScriptPosition Position, string Name) : ScriptExpression(Position);

/// <summary>The value of a variable.</summary>
internal sealed record VariableExpression(ScriptPosition Position, string Name) : ScriptExpression(Position);

/// <summary>An operator before its operand.</summary>
internal sealed record UnaryExpression(ScriptPosition Position, ScriptOperator Operator, ScriptExpression Operand)
    : ScriptExpression(Position);

/// <summary>
/// An operator between its operands. A tree leans to the left as far as its text is long: walk the left side in a loop.
/// </summary>
internal sealed record BinaryExpression(
    ScriptPosition Position, ScriptOperator Operator, ScriptExpression Left, ScriptExpression Right)
    : ScriptExpression(Position);

/// <summary><c>[a, b]</c>.</summary>
internal sealed record ArrayExpression(ScriptPosition Position, IReadOnlyList<ScriptExpression> Items)
    : ScriptExpression(Position);

/// <summary><c>f(a, b)</c>.</summary>
internal sealed record CallExpression(
    ScriptPosition Position, ScriptFunction Function, IReadOnlyList<ScriptExpression> Arguments)
    : ScriptExpression(Position);

/// <summary><c>not set</c> and its like.</summary>
internal sealed record GuardExpression(ScriptPosition Position, ScriptGuard Guard) : ScriptExpression(Position);

/// <summary>
/// A read or write, whose outcome is its value. It stands alone, behind <c>let x =</c>, or behind <c>return</c>.
/// </summary>
/// <param name="Position">Where it begins.</param>
/// <param name="Kind">What it does.</param>
/// <param name="IsEphemeral">The level of its key.</param>
/// <param name="Key">The key, bucket or prefix.</param>
/// <param name="Operand">The value, the time in milliseconds, or the revision behind AT; or null.</param>
/// <param name="Options">The modifiers of a set, else null.</param>
internal sealed record AccessExpression(
    ScriptPosition Position,
    ScriptAccess Kind,
    bool IsEphemeral,
    ScriptExpression Key,
    ScriptExpression? Operand,
    ScriptSetOptions? Options)
    : ScriptExpression(Position);

/// <summary>The modifiers of a set. Immutable.</summary>
internal sealed record ScriptSetOptions
{
    /// <summary>NX: only if the key does not exist.</summary>
    public bool IfAbsent { get; init; }

    /// <summary>XX: only if the key exists.</summary>
    public bool IfPresent { get; init; }

    /// <summary>NOREV: the replaced revision is not kept.</summary>
    public bool WithoutHistory { get; init; }

    /// <summary>EX: the time to live in milliseconds.</summary>
    public ScriptExpression? TtlMs { get; init; }

    /// <summary>CMP: only if the key has this value.</summary>
    public ScriptExpression? Compared { get; init; }

    /// <summary>CMPREV: only if the key has this revision.</summary>
    public ScriptExpression? ComparedRevision { get; init; }
}
