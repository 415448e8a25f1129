using Kahuna.Client;
using Kahuna.Client.Wire.Grpc;

namespace Kahuna.Tests.Cluster.Attack;

/// <summary>One kind of hostile client: rounds of an attack with a pause between them. What the cluster refuses or cuts is expected. Owned by one task.</summary>
internal abstract class Attacker
{
    public abstract string Name { get; }

    /// <summary>Attacks that were carried out, or cut short by the cluster.</summary>
    public long Rounds { get; private set; }

    /// <summary>Rounds that the cluster ended.</summary>
    public long Refused { get; private set; }

    /// <summary>Between two rounds.</summary>
    protected virtual TimeSpan Pause => TimeSpan.FromSeconds(2);

    public async Task RunAsync(AttackTarget target, CancellationToken end)
    {
        while (!end.IsCancellationRequested)
        {
            try
            {
                await RoundAsync(target, end);
            }
            catch (Exception refusal) when (refusal is IOException or GrpcException or HttpRequestException or KahunaException or InvalidDataException or OperationCanceledException)
            {
                Refused++;
            }

            Rounds++;
            await Task.Delay(Pause, end).ContinueWith(static _ => { }, TaskScheduler.Default);
        }
    }

    protected abstract Task RoundAsync(AttackTarget target, CancellationToken end);
}
