using Kahuna.Wire.Commands;

namespace Kahuna.Tests.Cluster.Attack;

/// <summary>Streams full of calls that wait for news of one free lock.</summary>
internal sealed class ObserversAttacker : Attacker
{
    private const int Streams = 6;
    private const int Observers = 16_000;
    private const int HoldMs = 3_000;

    private static readonly TimeSpan s_held = TimeSpan.FromSeconds(8);

    public override string Name => "observers";

    protected override long DoneMin => Observers;

    protected override string DoneWords => "observers answered";

    protected override async Task RoundAsync(AttackTarget target, CancellationToken end)
    {
        Uri leader = await target.LeaderAsync("attack-free"u8.ToArray());
        List<RawStream> streams = [];
        try
        {
            for (int i = 0; i < Streams; i++)
            {
                RawStream stream = await AttackTarget.OpenAsync(leader);
                streams.Add(stream);
                for (int j = 0; j < Observers; j++)
                {
                    stream.Add(new Command
                    {
                        Kind = CommandKind.LockObserve,
                        Flags = CommandFlags.Number,
                        Durability = Durability.Persistent,
                        Key = "attack-free"u8,
                        Number = HoldMs,
                    });
                }

                await stream.SendAsync();
            }

            Task[] reads = [.. streams.Select(static stream => stream.ReadAllAsync())];
            await Task.WhenAny(Task.WhenAll(reads), Task.Delay(s_held, CancellationToken.None));
            Done += streams.Sum(static stream => stream.Replies);

            // The others are still held, and end with their streams.
            await Task.WhenAll(reads.Where(static read => read.IsCompleted));
        }
        finally
        {
            foreach (RawStream stream in streams)
            {
                await stream.DisposeAsync();
            }
        }
    }
}
