using Kahuna.Wire.Commands;

namespace Kahuna.Tests.Cluster.Attack;

/// <summary>Sets keys whose published hashes are alike, and deletes many of them in one frame.</summary>
internal sealed class CollidingKeysAttacker : Attacker
{
    private const int Keys = 22_500;
    private const int InFrame = 12_000;

    private List<byte[]>? _names;

    public override string Name => "colliding keys";

    protected override long DoneMin => Keys;

    protected override string DoneWords => "keys set or deleted";

    protected override async Task RoundAsync(AttackTarget target, CancellationToken end)
    {
        _names ??= CollidingNames.Make(Keys, lower: 0x1234_5678);
        await using RawStream stream = await AttackTarget.OpenAsync(await target.LeaderAsync(_names[0]));
        foreach (CommandKind kind in (CommandKind[])[CommandKind.Set, CommandKind.Delete])
        {
            foreach (byte[][] names in _names.Chunk(InFrame))
            {
                foreach (byte[] name in names)
                {
                    stream.Add(new Command { Kind = kind, Durability = Durability.Persistent, Key = name });
                }

                await stream.SendAsync();
                long before = stream.Done;
                await stream.ReadAllAsync();
                Done += stream.Done - before;
            }
        }
    }
}
