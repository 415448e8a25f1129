using System.Net.Security;
using Kahuna.Tests.Api.Grpc;

namespace Kahuna.Tests.Cluster.Attack;

/// <summary>Unary writes whose keys are no UTF-8. A node that takes one makes one key of many.</summary>
internal sealed class BadTextAttacker : Attacker
{
    private const int Calls = 500;

    /// <summary>INVALID_ARGUMENT.</summary>
    private const string Refusal = "3";

    private readonly Random _random = new(7);

    public override string Name => "bad text";

    protected override long DoneMin => Calls;

    protected override string DoneWords => "keys refused";

    protected override async Task RoundAsync(AttackTarget target, CancellationToken end)
    {
        using HttpMessageInvoker http = new(new SocketsHttpHandler
        {
            SslOptions = new SslClientAuthenticationOptions
            {
                RemoteCertificateValidationCallback = static (_, _, _, _) => true,
            },
            UseProxy = false,
        });
        for (int i = 0; i < Calls; i++)
        {
            using HttpRequestMessage request = RawHttp.Request(
                target.Nodes[i % target.Nodes.Count], "/kahuna.v1.KeyValues/SetKeyValue", Draw());
            using HttpResponseMessage response = await http.SendAsync(request, CancellationToken.None);
            string? status = await RawHttp.StatusAsync(response);
            if (status == "0")
            {
                throw new InvalidOperationException("a key that is no UTF-8 was written");
            }

            Done += status == Refusal ? 1 : 0;
        }
    }

    /// <summary>A request with such a key, and PERSISTENT; in all else it is one that would be carried out.</summary>
    private byte[] Draw()
    {
        byte[] key = new byte[_random.Next(2, 100)];
        _random.NextBytes(key);

        // A byte that follows none, and that no text begins with.
        key[_random.Next(key.Length)] = 0xFF;
        byte[] message = [0x0A, (byte)key.Length, .. key, 0x18, 1];
        return [0, 0, 0, 0, (byte)message.Length, .. message];
    }
}
