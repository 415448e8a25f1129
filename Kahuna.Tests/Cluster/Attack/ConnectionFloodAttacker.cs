using System.Net.Security;
using Kahuna.Tests.Api.Grpc;

namespace Kahuna.Tests.Cluster.Attack;

/// <summary>TLS connections that say nothing, and streams that are opened faster than the node allows.</summary>
internal sealed class ConnectionFloodAttacker : Attacker
{
    private const int Connections = 200;
    private const int Streams = 2_000;

    /// <summary>A short run may end within the first round.</summary>
    private const int ConnectionsMin = 20;

    public override string Name => "connections";

    protected override long DoneMin => ConnectionsMin;

    protected override string DoneWords => "TLS connections held";

    protected override async Task RoundAsync(AttackTarget target, CancellationToken end)
    {
        foreach (Uri node in target.Nodes)
        {
            List<SslStream> held = [];
            for (int i = 0; i < Connections && !end.IsCancellationRequested; i++)
            {
                if (await FloodClient.ConnectAsync(node) is { } connection)
                {
                    held.Add(connection);
                    Done++;
                }
            }

            foreach (SslStream connection in held)
            {
                await connection.DisposeAsync();
            }

            await FloodClient.OpenStreamsRudelyAsync(node, "/kahuna.v1.Cluster/Exchange", Streams);
        }
    }
}
