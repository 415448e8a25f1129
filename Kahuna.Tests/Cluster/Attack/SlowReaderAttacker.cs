using Kahuna.Wire.Commands;

namespace Kahuna.Tests.Cluster.Attack;

/// <summary>Asks ten thousand times for a value of a mebibyte, and reads nothing of what comes.</summary>
internal sealed class SlowReaderAttacker : Attacker
{
    private const int Reads = 10_000;
    private const int ValueBytes = 1 << 20;
    private const int ReadsInFrame = 1_000;

    private static readonly TimeSpan s_held = TimeSpan.FromSeconds(10);

    private readonly byte[] _value = new byte[ValueBytes];

    public override string Name => "slow reader";

    protected override long DoneMin => 1;

    protected override string DoneWords => "values stored to be read";

    protected override async Task RoundAsync(AttackTarget target, CancellationToken end)
    {
        await using RawStream stream = await AttackTarget.OpenAsync(
            await target.LeaderAsync("attack-large"u8.ToArray()));
        stream.Add(new Command
        {
            Kind = CommandKind.Set,
            Durability = Durability.Persistent,
            Key = "attack-large"u8,
            Value = _value,
        });
        await stream.SendAsync();
        await stream.ReadAllAsync();
        Done += stream.Done;

        Task sending = SendReadsAsync(stream);
        await Task.WhenAny(sending, Task.Delay(s_held, end));
        await Task.Delay(s_held, end).ContinueWith(static _ => { }, TaskScheduler.Default);
    }

    private static async Task SendReadsAsync(RawStream stream)
    {
        for (int i = 0; i < Reads; i++)
        {
            stream.Add(new Command
            {
                Kind = CommandKind.Get,
                Durability = Durability.Persistent,
                Key = "attack-large"u8,
            });
            if (i % ReadsInFrame == ReadsInFrame - 1)
            {
                try
                {
                    await stream.SendAsync();
                }
                catch (Exception ended) when (
                    ended is IOException
                        or OperationCanceledException
                        or ObjectDisposedException
                        or HttpRequestException)
                {
                    return;
                }
            }
        }
    }
}
