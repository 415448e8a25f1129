using System.Net.Security;
using System.Net.Sockets;
using Kahuna.Tests.Tools.Processes;
using Kahuna.Tests.Tools.Reporting;

namespace Kahuna.Tests.Tools;

/// <summary>
/// The measurement of scripts/idle_connections.sh: TLS connections to a node of this machine that stay idle, and what
/// each costs the node. Stateless.
/// </summary>
internal static class IdleConnections
{
    public const string Defaults = "--port=0 --connections=0 --pid=0";

    /// <summary>
    /// The preface of HTTP/2 and empty settings: the node has an HTTP/2 connection then, and no stream.
    /// </summary>
    private static ReadOnlySpan<byte> Greeting => "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\u0004\0\0\0\0\0"u8;

    public static void Run(Measurement run)
    {
        (int port, int count, int process) =
            (run.Options.Number("port"), run.Options.Number("connections"), run.Options.Number("pid"));
        Connect(port).Dispose();
        run.Sleep(2);
        long before = ProcFiles.Memory(process).Resident;
        SslStream[] held = [.. Enumerable.Range(0, count).Select(_ => Connect(port))];
        run.Sleep(5);
        long after = ProcFiles.Memory(process).Resident;
        double each = (after - before) / 1024.0 / count;
        run.Output.Line($"{count} connections: {before >> 20} MB before, {after >> 20} MB after, {each:F1} KB each");
        Array.ForEach(held, static connection => connection.Dispose());
        run.Sleep(25);
        run.Output.Line($"25 s after their end: {ProcFiles.Memory(process).Resident >> 20} MB");
    }

    private static SslStream Connect(int port)
    {
        SslStream connection = new(new TcpClient("127.0.0.1", port).GetStream());
        connection.AuthenticateAsClient(new SslClientAuthenticationOptions
        {
            TargetHost = "localhost",
            ApplicationProtocols = [SslApplicationProtocol.Http2],
            RemoteCertificateValidationCallback = static (_, _, _, _) => true,
        });
        connection.Write(Greeting);
        connection.ReadAtLeast(new byte[4096], 1);
        return connection;
    }
}
