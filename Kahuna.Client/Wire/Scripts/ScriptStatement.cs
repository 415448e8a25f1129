namespace Kahuna.Wire.Scripts;

/// <summary>One statement of a script. The family below is closed. Immutable.</summary>
/// <param name="Position">Where it begins; errors at run time name it.</param>
internal abstract record ScriptStatement(ScriptPosition Position);

/// <summary>A read or write that stands alone.</summary>
internal sealed record AccessStatement(ScriptPosition Position, AccessExpression Statement) : ScriptStatement(Position);

/// <summary><c>let name = value</c>.</summary>
internal sealed record LetStatement(ScriptPosition Position, string Name, ScriptExpression Value)
    : ScriptStatement(Position);

/// <summary><c>if … elseif … else … end</c>.</summary>
internal sealed record IfStatement(
    ScriptPosition Position, IReadOnlyList<ScriptBranch> Branches, IReadOnlyList<ScriptStatement> Otherwise)
    : ScriptStatement(Position);

/// <summary>A condition with what is done when it is true.</summary>
internal sealed record ScriptBranch(
    ScriptPosition Position, ScriptExpression Condition, IReadOnlyList<ScriptStatement> Body);

/// <summary><c>for name in items do … end</c>.</summary>
internal sealed record ForStatement(
    ScriptPosition Position, string Name, ScriptExpression Items, IReadOnlyList<ScriptStatement> Body)
    : ScriptStatement(Position);

/// <summary><c>while condition do … end</c>.</summary>
internal sealed record WhileStatement(
    ScriptPosition Position, ScriptExpression Condition, IReadOnlyList<ScriptStatement> Body)
    : ScriptStatement(Position);

/// <summary><c>break</c> or <c>continue</c>.</summary>
internal sealed record JumpStatement(ScriptPosition Position, bool IsBreak) : ScriptStatement(Position);

/// <summary><c>begin … end</c>.</summary>
/// <param name="Position">Where it begins.</param>
/// <param name="CommitsAtEnd">False for <c>autoCommit=false</c>: its end rolls back.</param>
/// <param name="Body">Its statements.</param>
internal sealed record BlockStatement(
    ScriptPosition Position, bool CommitsAtEnd, IReadOnlyList<ScriptStatement> Body)
    : ScriptStatement(Position);

/// <summary><c>commit</c>, <c>rollback</c> or <c>return</c>, which end the script.</summary>
/// <param name="Position">Where it begins.</param>
/// <param name="IsRollback">Drops the writes.</param>
/// <param name="Value">The result; null for the outcome of the last data statement.</param>
internal sealed record FinishStatement(ScriptPosition Position, bool IsRollback, ScriptExpression? Value)
    : ScriptStatement(Position);

/// <summary><c>throw value</c>.</summary>
internal sealed record ThrowStatement(ScriptPosition Position, ScriptExpression Value) : ScriptStatement(Position);
