namespace Kahuna.Server.Hosting.Options;

/// <summary>The data directory cannot be used by this node. The message is one line for the user.</summary>
internal sealed class DataDirectoryException(string message, Exception? inner = null) : Exception(message, inner);
