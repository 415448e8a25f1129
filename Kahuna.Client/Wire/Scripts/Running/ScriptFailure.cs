namespace Kahuna.Wire.Scripts.Running;

/// <summary>
/// A script did what it must not do. <see cref="ScriptRun"/> catches it and adds the position. Immutable.
/// </summary>
/// <param name="message">A clause without a position and a full stop.</param>
#pragma warning disable CA1032, CA1710
internal sealed class ScriptFailure(string message) : Exception(message);
