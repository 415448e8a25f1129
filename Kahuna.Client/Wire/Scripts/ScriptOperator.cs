namespace Kahuna.Wire.Scripts;

/// <summary>The operators with two operands, and the unary ones at the end.</summary>
internal enum ScriptOperator
{
    /// <summary><c>||</c>: the right side is only evaluated when the left one is false.</summary>
    Or,

    /// <summary><c>&amp;&amp;</c>: the right side is only evaluated when the left one is true.</summary>
    And,

    /// <summary><c>=</c> or <c>==</c>.</summary>
    Equal,

    /// <summary><c>!=</c> or <c>&lt;&gt;</c>.</summary>
    NotEqual,

    /// <summary><c>&lt;</c>.</summary>
    Less,

    /// <summary><c>&lt;=</c>.</summary>
    LessOrEqual,

    /// <summary><c>&gt;</c>.</summary>
    Greater,

    /// <summary><c>&gt;=</c>.</summary>
    GreaterOrEqual,

    /// <summary><c>..</c>: the integers from the left to the right side, both included.</summary>
    Range,

    /// <summary><c>+</c>.</summary>
    Add,

    /// <summary><c>-</c>.</summary>
    Subtract,

    /// <summary><c>*</c>.</summary>
    Multiply,

    /// <summary><c>/</c>: integers truncate toward zero.</summary>
    Divide,

    /// <summary><c>%</c>, of integers.</summary>
    Remainder,

    /// <summary><c>a[i]</c>, from 0.</summary>
    Index,

    /// <summary>Unary <c>-</c>.</summary>
    Negate,

    /// <summary><c>not</c> or <c>!</c>.</summary>
    Not,
}
