namespace Kahuna.Wire.Scripts;

/// <summary>A key that a script names in its text, so that it is known before the script runs. Immutable.</summary>
/// <param name="Name">The key, or null when a parameter gives it.</param>
/// <param name="Parameter">The name of the parameter that gives the key, without <c>@</c>, or null.</param>
/// <param name="IsEphemeral">The level of the statement.</param>
/// <param name="IsBucket">The name is that of a bucket, which is read as a whole.</param>
/// <param name="Line">Line of the key in the text, from 1.</param>
/// <param name="Column">Column of the key in the text, from 1.</param>
internal readonly record struct ScriptKey(
    string? Name, string? Parameter, bool IsEphemeral, bool IsBucket, int Line, int Column);
