namespace Kahuna.Server.Hosting.Options;

/// <summary>The text of one option, and the name under which the user gave it, for messages. Immutable.</summary>
internal readonly record struct GivenValue(string Text, string Origin);
