namespace Kahuna.Server.Storage;

/// <summary>
/// This process must not use the data directory. The message is a sentence for the operator. Immutable.
/// </summary>
internal sealed class DataDirectoryRefusedException(string message) : Exception(message);
