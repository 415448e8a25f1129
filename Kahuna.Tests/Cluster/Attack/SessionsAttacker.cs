using Kahuna.Wire.Commands;

namespace Kahuna.Tests.Cluster.Attack;

/// <summary>
/// Writes that begin a session each, so that the cluster must remember all of them and has no room for new clients.
/// </summary>
internal sealed class SessionsAttacker : Attacker
{
    private const int Calls = 20_000;
    private const int InFrame = 2_000;

    private readonly Random _random = new(6);

    public override string Name => "sessions";

    protected override long DoneMin => 100;

    protected override string DoneWords => "sessions begun";

    protected override TimeSpan Pause => TimeSpan.FromSeconds(1);

    protected override async Task RoundAsync(AttackTarget target, CancellationToken end)
    {
        await using RawStream stream = await AttackTarget.OpenAsync(
            await target.LeaderAsync("attack-sessions"u8.ToArray()));
        await BeginAsync(stream, _random, Calls, end);
        Done += stream.Done;
    }

    /// <summary>Begins so many sessions.</summary>
    /// <exception cref="IOException">The stream has ended before that.</exception>
    public static async Task BeginAsync(RawStream stream, Random random, int calls, CancellationToken end)
    {
        for (int i = 1; i <= calls && !end.IsCancellationRequested; i++)
        {
            stream.Add(new Command
            {
                Kind = CommandKind.Set,
                Flags = CommandFlags.Session | CommandFlags.Opening,
                Durability = Durability.Persistent,
                Key = "attack-sessions"u8,
                SessionId = IdempotencyKey.AsSession((ulong)random.NextInt64(1, long.MaxValue)),
                Sequence = 1,
                Lag = 0,
            });
            if (i % InFrame == 0)
            {
                await stream.SendAsync();
                await stream.ReadAllAsync();
            }
        }
    }
}
