namespace Kahuna.Wire.Scripts;

/// <summary>A value that the caller gives to a script, where <c>@name</c> stands for it. Immutable.</summary>
/// <param name="Name">The name without <c>@</c>, case-sensitive.</param>
/// <param name="Value">A null, boolean, integer, double, string or bytes.</param>
internal readonly record struct ScriptParameter(string Name, ScriptValue Value);
