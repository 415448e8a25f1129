namespace Kahuna.Tests.Cluster.Soak;

/// <summary>A soak found something wrong, or proved nothing; the message says what.</summary>
internal sealed class SoakException(string message) : Exception(message);
