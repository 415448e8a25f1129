namespace Kahuna.Server.Hosting;

/// <summary>The node's owner decides when it stops; signals are the process's business. Stateless.</summary>
internal sealed class OwnerLifetime : IHostLifetime
{
    public Task WaitForStartAsync(CancellationToken cancellationToken) => Task.CompletedTask;

    public Task StopAsync(CancellationToken cancellationToken) => Task.CompletedTask;
}
