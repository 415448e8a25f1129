using System.Net.Sockets;

namespace Kahuna.Tests.Tidy.Samples.Raft;

/// <summary>Negative control: a socket.</summary>
internal sealed class OpensSocket
{
    public static object Open() => new Socket(SocketType.Stream, ProtocolType.Tcp);
}
