using System.Text;
using Kahuna.Wire.Routing;

namespace Kahuna.Tests.Cluster.Attack;

public sealed class CollidingNamesTests
{
    [Fact]
    public void Names_are_valid_different_and_collide()
    {
        List<byte[]> names = CollidingNames.Make(1_000, lower: 0xDEAD_BEEF);
        Assert.Equal(1_000, names.Select(Encoding.ASCII.GetString).Distinct().Count());
        Assert.All(names, static name => Assert.Equal(0xDEAD_BEEF, (uint)XxHash64.Hash(name)));
    }
}
