namespace Kahuna.Server.Hosting.Certificates;

/// <summary>A certificate or key cannot be used. The message is one line for the user.</summary>
internal sealed class CertificateException(string message, Exception? inner = null) : Exception(message, inner);
