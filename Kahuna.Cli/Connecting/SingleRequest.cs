using System.Globalization;
using System.Net.Security;
using System.Net.Sockets;
using System.Text;
using Kahuna.Client;

namespace Kahuna.Cli.Connecting;

/// <summary>
/// One HTTP request to one node, for a process that ends with the answer: nothing of a pool of connections has to be
/// loaded and compiled for it. HTTP 1.0, so that the answer ends with the connection and is not cut into chunks.
/// Static; each call blocks its thread.
/// </summary>
internal static class SingleRequest
{
    private const int AnswerBytesMax = 1 << 20;

    /// <summary>The body of the answer; null: the node answered with another status than 200.</summary>
    /// <param name="endpoint">The node.</param>
    /// <param name="path">Path and query, escaped.</param>
    /// <param name="options">Trust and credentials.</param>
    /// <param name="authorization">The value of that header; null: none is sent.</param>
    /// <param name="ct">Closes the connection.</param>
    /// <exception cref="IOException">No answer came, it was cut off, or it has more than 1 MiB.</exception>
    /// <exception cref="SocketException">The node cannot be reached, or the wait has ended.</exception>
    /// <exception cref="ObjectDisposedException">The wait has ended.</exception>
    /// <exception cref="System.Security.Authentication.AuthenticationException">The node is not trusted.</exception>
    public static ReadOnlyMemory<byte>? Get(
        Uri endpoint, string path, KahunaClientOptions options, string? authorization, CancellationToken ct)
    {
        SslClientAuthenticationOptions trust = NodeHttp.TrustOf(endpoint, options);
        trust.ApplicationProtocols = [SslApplicationProtocol.Http11];
        using Socket socket = new(SocketType.Stream, ProtocolType.Tcp) { NoDelay = true };
        using CancellationTokenRegistration end = ct.UnsafeRegister(static open => ((Socket)open!).Dispose(), socket);
        socket.Connect(endpoint.IdnHost, endpoint.Port);
        using SslStream stream = new(new NetworkStream(socket));
        stream.AuthenticateAsClient(trust);
        string head = string.Create(
            CultureInfo.InvariantCulture, $"GET {path} HTTP/1.0\r\nHost: {endpoint.Authority}\r\n");
        stream.Write(Encoding.Latin1.GetBytes(
            authorization is null ? $"{head}\r\n" : $"{head}Authorization: {authorization}\r\n\r\n"));
        return BodyOf(ReadToEnd(stream));
    }

    private static ReadOnlyMemory<byte> ReadToEnd(SslStream stream)
    {
        byte[] answer = new byte[16 * 1024];
        int length = 0;
        int read;
        while ((read = stream.Read(answer, length, answer.Length - length)) > 0)
        {
            length += read;
            if (length < answer.Length)
            {
                continue;
            }

            if (length >= AnswerBytesMax)
            {
                throw new IOException("the answer has more than 1 MiB");
            }

            Array.Resize(ref answer, 2 * length);
        }

        return answer.AsMemory(0, length);
    }

    private static ReadOnlyMemory<byte>? BodyOf(ReadOnlyMemory<byte> answer)
    {
        int end = answer.Span.IndexOf("\r\n\r\n"u8);
        if (end < 0)
        {
            throw new IOException("the answer ends in its head");
        }

        // Typed: a null of its own would become an empty memory.
        return answer.Span.StartsWith("HTTP/1."u8) && answer.Span[8..].StartsWith(" 200"u8)
            ? answer[(end + 4)..]
            : (ReadOnlyMemory<byte>?)null;
    }
}
