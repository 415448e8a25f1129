namespace Kahuna.Server.Storage;

/// <summary>A data directory that this process must not use; the message is a sentence for the operator. Immutable.</summary>
internal sealed class DataDirectoryRefusedException(string message) : Exception(message);
