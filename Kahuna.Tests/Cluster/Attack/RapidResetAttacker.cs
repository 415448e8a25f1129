using Kahuna.Tests.Api.Grpc;

namespace Kahuna.Tests.Cluster.Attack;

/// <summary>Streams that are reset as soon as they are opened, as fast as the node takes them.</summary>
internal sealed class RapidResetAttacker : Attacker
{
    private const int Connections = 4;
    private const int Streams = 5_000;

    /// <summary>Fewer than this are a client that gave up some calls.</summary>
    private const int ResetsMin = 100;

    public override string Name => "rapid reset";

    protected override long DoneMin => ResetsMin;

    protected override string DoneWords => "streams reset";

    protected override async Task RoundAsync(AttackTarget target, CancellationToken end)
    {
        for (int i = 0; i < Connections; i++)
        {
            foreach (Uri node in target.Nodes)
            {
                Done += await FloodClient.ResetStreamsUntilCutAsync(node, "/kahuna.v1.Cluster/Exchange", Streams);
            }
        }
    }
}
