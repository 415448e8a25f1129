namespace Kahuna.Cli.Errors;

/// <summary>The reader of standard output has gone, as <c>head</c> does. The command ends without an error.</summary>
internal sealed class OutputClosedException(Exception cause) : Exception("Standard output is closed.", cause);
