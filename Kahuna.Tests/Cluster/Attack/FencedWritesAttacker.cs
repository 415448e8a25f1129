using System.Buffers.Binary;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.Cluster.Attack;

/// <summary>Many shared holders of one lock, and frames full of writes under a token of it.</summary>
internal sealed class FencedWritesAttacker : Attacker
{
    private const int Holders = 20_000;
    private const int InFrame = 4_000;
    private const int FencedWrites = 9_000;

    public override string Name => "fenced writes";

    protected override long DoneMin => Holders;

    protected override string DoneWords => "holders of the lock";

    protected override async Task RoundAsync(AttackTarget target, CancellationToken end)
    {
        await using RawStream stream = await AttackTarget.OpenAsync(
            await target.LeaderAsync("attack/lock"u8.ToArray()));
        byte[] form = new byte[LockBody.HeaderBytes + sizeof(int)];
        for (int i = 1; i <= Holders; i++)
        {
            byte[] owner = new byte[sizeof(int)];
            BinaryPrimitives.WriteInt32LittleEndian(
                owner, 0x21212121 + (i & 0x3F) + ((i >> 6 & 0x3F) << 8) + ((i >> 12 & 0x3F) << 16));
            new LockBody { Mode = LockMode.Shared, Owner = owner }.Write(form);
            stream.Add(new Command
            {
                Kind = CommandKind.LockAcquire,
                Flags = CommandFlags.Ttl,
                Durability = Durability.Persistent,
                Key = "attack/lock"u8,
                Value = form,
                TtlMs = 20_000,
            });
            if (i % InFrame == 0)
            {
                await stream.SendAsync();
                await stream.ReadAllAsync();
            }
        }

        Done += stream.Done;

        for (int i = 0; i < FencedWrites; i++)
        {
            stream.Add(new Command
            {
                Kind = CommandKind.Set,
                Flags = CommandFlags.Fenced,
                Durability = Durability.Persistent,
                Key = "attack/key"u8,
                FenceToken = 1,
                FenceName = "attack/lock"u8,
            });
        }

        await stream.SendAsync();
        await stream.ReadAllAsync();
    }
}
