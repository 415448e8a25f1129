namespace Kahuna.Server.Hosting.Certificates;

/// <summary>A certificate or key is unusable. The message is one line for the user.</summary>
internal sealed class CertificateException(string message, Exception? inner = null) : Exception(message, inner);
