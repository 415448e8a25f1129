namespace Kahuna.Wire.Scripts;

/// <summary>A place in the text of a script. Immutable.</summary>
/// <param name="Line">From 1.</param>
/// <param name="Column">From 1, in Unicode code points.</param>
internal readonly record struct ScriptPosition(int Line, int Column);
