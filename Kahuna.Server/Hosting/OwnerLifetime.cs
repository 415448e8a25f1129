namespace Kahuna.Server.Hosting;

/// <summary>A host lifetime without signal handling: the node's owner stops it. Stateless.</summary>
internal sealed class OwnerLifetime : IHostLifetime
{
    public Task WaitForStartAsync(CancellationToken cancellationToken) => Task.CompletedTask;

    public Task StopAsync(CancellationToken cancellationToken) => Task.CompletedTask;
}
