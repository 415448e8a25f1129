using Kahuna.Wire.Commands;

namespace Kahuna.Tests.Cluster.Attack;

/// <summary>Writes that have an idempotency key each, so that the cluster must remember all of them.</summary>
internal sealed class KeyedCallsAttacker : Attacker
{
    private const int Calls = 10_000;
    private const int InFrame = 2_000;

    private readonly Random _random = new(3);

    public override string Name => "keyed calls";

    protected override long DoneMin => 1_000;

    protected override string DoneWords => "calls carried out";

    protected override TimeSpan Pause => TimeSpan.FromSeconds(1);

    protected override async Task RoundAsync(AttackTarget target, CancellationToken end)
    {
        await using RawStream stream = await AttackTarget.OpenAsync(
            await target.LeaderAsync("attack-keyed"u8.ToArray()));
        for (int i = 1; i <= Calls; i++)
        {
            stream.Add(new Command
            {
                Kind = CommandKind.Set,
                Flags = CommandFlags.Session | CommandFlags.Opening,
                Durability = Durability.Persistent,
                Key = "attack-keyed"u8,
                SessionId = IdempotencyKey.AsKey((ulong)_random.NextInt64()),
                Sequence = 1,
                Lag = 0,
            });
            if (i % InFrame == 0)
            {
                await stream.SendAsync();
                long before = stream.Done;
                await stream.ReadAllAsync();
                Done += stream.Done - before;
            }
        }
    }
}
