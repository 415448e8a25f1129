using System.Net;
using System.Net.Sockets;

namespace Kahuna.Tests.Cluster.Attack;

/// <summary>Connections that begin with bytes which are no TLS hello, or the beginning of one.</summary>
internal sealed class HelloBytesAttacker : Attacker
{
    private const int Connections = 50;

    private readonly Random _random = new(1);

    public override string Name => "hello bytes";

    protected override long DoneMin => Connections;

    protected override string DoneWords => "of them sent";

    protected override TimeSpan Pause => TimeSpan.FromMilliseconds(500);

    protected override async Task RoundAsync(AttackTarget target, CancellationToken end)
    {
        foreach (Uri node in target.Nodes)
        {
            for (int i = 0; i < Connections; i++)
            {
                using Socket socket = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
                try
                {
                    await socket.ConnectAsync(IPAddress.Loopback, node.Port, end);
                    await socket.SendAsync(Draw(i), end);
                    Done++;
                }
                catch (SocketException)
                {
                    // Refused or cut, as it should be.
                }
            }
        }
    }

    private byte[] Draw(int i)
    {
        if (i == 0)
        {
            return [0x16, 3, 1, 0, 0, 1, 0, 0, 0];
        }

        byte[] bytes = new byte[_random.Next(1, 300)];
        _random.NextBytes(bytes);
        byte[] hello = [0x16, 3, 1, (byte)_random.Next(2), (byte)_random.Next(256), 1, 0, (byte)_random.Next(2)];
        hello.AsSpan(0, Math.Min(hello.Length, bytes.Length)).CopyTo(bytes);
        return bytes;
    }
}
