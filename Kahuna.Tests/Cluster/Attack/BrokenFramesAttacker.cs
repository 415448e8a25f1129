namespace Kahuna.Tests.Cluster.Attack;

/// <summary>
/// Frames that are none: random bytes, lengths beyond every limit, and messages of which the rest never comes.
/// </summary>
internal sealed class BrokenFramesAttacker : Attacker
{
    private const int Streams = 20;
    private const int Kinds = 3;

    private static readonly byte[] s_hugeLength = [0, 0xFF, 0xFF, 0xFF, 0xFF, 0x0A];
    private static readonly byte[] s_neverEnds = [0, 0x02, 0, 0, 0, 0x0A];

    private readonly Random _random = new(5);

    public override string Name => "broken frames";

    protected override long DoneMin => Kinds;

    protected override string DoneWords => "of them sent";

    protected override async Task RoundAsync(AttackTarget target, CancellationToken end)
    {
        for (int i = 0; i < Streams && !end.IsCancellationRequested; i++)
        {
            await using RawStream stream = await AttackTarget.OpenAsync(target.Nodes[i % target.Nodes.Count]);
            byte[] bytes = new byte[_random.Next(1, 5_000)];
            _random.NextBytes(bytes);
            await stream.SendAsync((i % Kinds) switch { 0 => bytes, 1 => s_hugeLength, _ => s_neverEnds });
            Done++;
        }
    }
}
