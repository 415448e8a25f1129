using Kahuna.Client.Locks;

namespace Kahuna.Tests.Client;

/// <summary>Who of several calls of one owner gives their place in a queue back.</summary>
public sealed class SharedClaimsTests
{
    private static readonly (string, Durability, string) s_key = ("a", Durability.Persistent, "o");

    private readonly SharedClaims _claims = new();

    [Fact]
    public void The_last_that_waits_gives_the_place_back()
    {
        SharedClaims.Call first = _claims.Enter(s_key, waits: true);
        SharedClaims.Call second = _claims.Enter(s_key, waits: true);
        SharedClaims.Call other = _claims.Enter(("b", Durability.Persistent, "o"), waits: true);
        Assert.False(first.ExitAsLast());
        Assert.False(first.ExitAsLast());
        Assert.True(second.ExitAsLast());
        Assert.True(second.ExitAsLast());
        Assert.True(other.ExitAsLast());
    }

    [Fact]
    public void Who_does_not_wait_leaves_alone_those_that_do()
    {
        SharedClaims.Call trying = _claims.Enter(s_key, waits: false);
        Assert.True(trying.ExitAsLast());
        using (SharedClaims.Call waiting = _claims.Enter(s_key, waits: true))
        {
            Assert.False(trying.ExitAsLast());
            Assert.True(_claims.Enter(s_key, waits: true) is var later && !later.ExitAsLast());
        }

        Assert.True(trying.ExitAsLast());
    }
}
