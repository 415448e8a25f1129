using System.Globalization;
using Grpc.Core;

namespace Kahuna.Tests.Cluster.Attack;

/// <summary>
/// One kind of hostile client: rounds of an attack with a pause between them. What the cluster refuses or cuts is
/// expected. Owned by one task.
/// </summary>
internal abstract class Attacker
{
    public abstract string Name { get; }

    /// <summary>Rounds that were carried out to their end.</summary>
    public long Rounds { get; private set; }

    /// <summary>Rounds that the cluster ended.</summary>
    public long Refused { get; private set; }

    /// <summary>
    /// How often that happened without which the attack is none: what was sent has reached the code that it attacks.
    /// </summary>
    public long Done { get; protected set; }

    /// <summary>Fewer than this of <see cref="Done"/> attack nothing.</summary>
    protected abstract long DoneMin { get; }

    /// <summary>What <see cref="Done"/> counts.</summary>
    protected abstract string DoneWords { get; }

    /// <summary>Between two rounds.</summary>
    protected virtual TimeSpan Pause => TimeSpan.FromSeconds(2);

    /// <summary>The attack was carried out. A short run has one round of each kind at least.</summary>
    public bool HasAttacked => Rounds > 0 && Done >= DoneMin;

    /// <inheritdoc/>
    public override string ToString() => string.Create(
        CultureInfo.InvariantCulture,
        $"{Name}: {Rounds:N0} rounds, {Refused:N0} more ended by the cluster, {Done:N0} "
            + $"{DoneWords}"
            + $"{(HasAttacked ? "" : $", which is no attack: at least one round and {DoneMin:N0} are needed")}");

    public async Task RunAsync(AttackTarget target, CancellationToken end)
    {
        while (!end.IsCancellationRequested)
        {
            try
            {
                await RoundAsync(target, end);
                Rounds++;
            }
            catch (OperationCanceledException) when (end.IsCancellationRequested)
            {
                return;
            }
            catch (Exception refusal) when (
                refusal is IOException
                    or RpcException
                    or RpcException
                    or HttpRequestException
                    or KahunaException
                    or InvalidDataException
                    or OperationCanceledException)
            {
                Refused++;
            }

            await Task.Delay(Pause, end).ContinueWith(static _ => { }, TaskScheduler.Default);
        }
    }

    /// <summary>Attacks once. Throws what a client sees when the cluster ends that.</summary>
    protected abstract Task RoundAsync(AttackTarget target, CancellationToken end);
}
