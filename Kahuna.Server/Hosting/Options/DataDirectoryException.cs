namespace Kahuna.Server.Hosting.Options;

/// <summary>This node cannot use the data directory. The message is one line for the user.</summary>
internal sealed class DataDirectoryException(string message, Exception? inner = null) : Exception(message, inner);
