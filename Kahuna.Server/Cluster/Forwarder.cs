using System.Security.Cryptography.X509Certificates;
using Kahuna.Client.Wire.Buffers;
using Kahuna.Client.Wire.Outcomes;

namespace Kahuna.Server.Cluster;

internal sealed class Forwarder(IEnumerable<Uri> nodes, X509Certificate2Collection? roots) : IForwarder, IAsyncDisposable
{
    public Task<byte[]> ForwardAsync(ReadOnlyMemory<byte> command, CancellationToken cancellationToken)
    {
        _ = nodes;
        _ = roots;
        ByteBuffer b = ByteBuffer.Rent();
        Outcome.WriteError(b, OutcomeStatus.NotLeader, "no leader");
        return Task.FromResult(b.Written.ToArray());
    }

    public ValueTask DisposeAsync() => default;
}
