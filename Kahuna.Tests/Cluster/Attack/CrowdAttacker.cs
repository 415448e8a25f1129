using System.Buffers.Binary;
using Kahuna.Client;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.Cluster.Attack;

/// <summary>A crowd of readers that wait for one lock, and are all let in by one release.</summary>
internal sealed class CrowdAttacker : Attacker
{
    private const int Readers = 20_000;
    private const int InFrame = 4_000;
    private const int WaitMs = 60_000;

    private static readonly TimeSpan s_letIn = TimeSpan.FromSeconds(30);

    private long _owner = Random.Shared.NextInt64(1L << 32, 1L << 62);

    public override string Name => "crowd of readers";

    protected override long DoneMin => Readers / 2;

    protected override string DoneWords => "readers let in";

    protected override async Task RoundAsync(AttackTarget target, CancellationToken end)
    {
        await using KahunaClient client = KahunaClient.Connect(
            string.Join(',', target.Nodes), static options => options.Insecure = true);
        await using RawStream stream = await AttackTarget.OpenAsync(
            await target.LeaderAsync("attack-crowd"u8.ToArray()));
        await using (await client.Locks.AcquireAsync("attack-crowd", s_letIn, 2 * s_letIn))
        {
            byte[] owner = new byte[2 * sizeof(long)];
            byte[] form = new byte[LockBody.HeaderBytes + owner.Length];
            for (int i = 1; i <= Readers; i++)
            {
                Write(owner, ++_owner);
                new LockBody { Mode = LockMode.Shared, Owner = owner }.Write(form);
                stream.Add(new Command
                {
                    Kind = CommandKind.LockAcquire,
                    Flags = CommandFlags.Ttl | CommandFlags.Number,
                    Durability = Durability.Persistent,
                    Key = "attack-crowd"u8,
                    Value = form,
                    TtlMs = 5_000,
                    Number = WaitMs,
                });
                if (i % InFrame == 0)
                {
                    await stream.SendAsync();
                    await stream.ReadAllAsync();
                }
            }
        }

        // They are let in by several commands, and keep the lock for five seconds.
        int most = 0;
        long until = Environment.TickCount64 + (long)s_letIn.TotalMilliseconds;
        while (most < Readers && Environment.TickCount64 < until)
        {
            int holders = (await client.Locks.GetAsync("attack-crowd", ct: CancellationToken.None))?.HolderCount ?? 0;
            if (holders < most)
            {
                break;
            }

            most = holders;
            await Task.Delay(100, CancellationToken.None);
        }

        Done += most;
    }

    /// <summary>Digits, since an owner is text.</summary>
    private static void Write(Span<byte> owner, long number)
    {
        Span<byte> bytes = stackalloc byte[sizeof(long)];
        BinaryPrimitives.WriteInt64BigEndian(bytes, number);
        for (int i = 0; i < owner.Length; i++)
        {
            owner[i] = (byte)('a' + ((bytes[i / 2] >> (4 * (i % 2))) & 15));
        }
    }
}
