namespace Kahuna.Wire.Scripts.Running;

/// <summary>Why a run failed. Immutable.</summary>
/// <param name="Line">Line of the statement, from 1.</param>
/// <param name="Column">Column of the statement in Unicode code points, from 1.</param>
/// <param name="Message">The position, what happened, and that nothing was applied.</param>
internal readonly record struct ScriptError(int Line, int Column, string Message);
