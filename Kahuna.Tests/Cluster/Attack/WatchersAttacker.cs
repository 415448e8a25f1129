using System.Net.Security;
using Kahuna.Tests.Api.Grpc;

namespace Kahuna.Tests.Cluster.Attack;

/// <summary>Streams that watch the cluster and do not read what they are told.</summary>
internal sealed class WatchersAttacker : Attacker
{
    private const int WatchersPerNode = 80;

    private static readonly TimeSpan s_held = TimeSpan.FromSeconds(8);

    public override string Name => "watchers";

    protected override long DoneMin => WatchersPerNode;

    protected override string DoneWords => "watches held";

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
        List<HttpResponseMessage> held = [];
        try
        {
            foreach (Uri node in target.Nodes)
            {
                for (int i = 0; i < WatchersPerNode; i++)
                {
                    using HttpRequestMessage request = RawHttp.Request(
                        node, "/kahuna.v1.Cluster/WatchCluster", [0, 0, 0, 0, 0]);
                    HttpResponseMessage response = await http.SendAsync(request, CancellationToken.None);
                    held.Add(response);

                    // An error comes with the headers.
                    Done += response.Headers.Contains("grpc-status") ? 0 : 1;
                }
            }

            await Task.Delay(s_held, end).ContinueWith(static _ => { }, TaskScheduler.Default);
        }
        finally
        {
            held.ForEach(static response => response.Dispose());
        }
    }
}
