using System.Text;
using Kahuna.Server.Access;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.Access;

/// <summary>What grants cover, name by name, range by range.</summary>
public sealed class RightsTests
{
    [Theory]
    [InlineData("a/", true)]
    [InlineData("a/b", true)]
    [InlineData("a/b/c", true)]
    [InlineData("a", false)]
    [InlineData("a0", false)]
    [InlineData("b/a/", false)]
    [InlineData("xa/b", false)]
    public void A_prefix_covers_the_names_that_begin_with_it(string name, bool covers) =>
        Assert.Equal(covers, Covers(Of(GrantScope.Prefix, "a/"), name));

    [Theory]
    [InlineData("a", true)]
    [InlineData("a\0", false)]
    [InlineData("ab", false)]
    [InlineData("a/b", false)]
    [InlineData("A", false)]
    public void A_key_covers_itself_alone(string name, bool covers) =>
        Assert.Equal(covers, Covers(Of(GrantScope.Key, "a"), name));

    [Theory]
    [InlineData("a", "a", true)]
    [InlineData("a", "a/b", true)]
    [InlineData("a", "a/b/c", true)]
    [InlineData("a", "ab", false)]
    [InlineData("a", "a0", false)]
    [InlineData("a/b", "a/b/c", true)]
    [InlineData("a/b", "a/b", false)]
    [InlineData("a/b", "a/bc", false)]
    [InlineData("a/b", "a/c", false)]
    public void A_bucket_covers_its_names_and_those_of_buckets_inside_it(string bucket, string name, bool covers) =>
        Assert.Equal(covers, Covers(Of(GrantScope.Bucket, bucket), name));

    [Fact]
    public void The_empty_prefix_covers_everything_and_an_empty_key_or_bucket_nothing()
    {
        Assert.True(Of(GrantScope.Prefix, "").CoversRange(Permissions.Read, Durability.Persistent, [], [], false));
        Assert.True(Covers(Of(GrantScope.Prefix, ""), "x"));
        foreach (GrantScope scope in (GrantScope[])[GrantScope.Key, GrantScope.Bucket])
        {
            Assert.False(Covers(Of(scope, ""), ""));
            Assert.False(Covers(Of(scope, ""), "/x"));
            Assert.False(Of(scope, "").CoversSome(Permissions.Read));
        }
    }

    [Fact]
    public void A_prefix_of_the_highest_bytes_has_no_end()
    {
        byte[] name = [0x61, 0xFF, 0xFF];
        Rights rights = Rights.Of([new Grant(Permissions.Read, GrantLevels.Both, GrantScope.Prefix, name)]);
        Assert.True(rights.Covers(Permissions.Read, Durability.Persistent, [.. name, 0xFF]));
        Assert.False(rights.Covers(Permissions.Read, Durability.Persistent, [0x62]));
        Rights last = Rights.Of([new Grant(Permissions.Read, GrantLevels.Both, GrantScope.Prefix, [0xFF, 0xFF])]);
        Assert.True(last.CoversRange(Permissions.Read, Durability.Persistent, [0xFF, 0xFF], [], hasEnd: false));
        Assert.True(last.CoversPrefix(Permissions.Read, Durability.Persistent, [0xFF, 0xFF, 1]));
        Assert.False(last.CoversPrefix(Permissions.Read, Durability.Persistent, [0xFF]));
    }

    [Fact]
    public void Two_grants_that_touch_cover_a_range_together()
    {
        Rights rights = Rights.Of([GrantOf(GrantScope.Prefix, "b"), GrantOf(GrantScope.Prefix, "a")]);
        Assert.True(CoversRange(rights, "a", "c"));
        Assert.True(CoversRange(rights, "ab", "bz"));
        Assert.False(CoversRange(rights, "a", "c\0"));
        Assert.False(CoversRange(rights, "a", null));
        Assert.False(CoversRange(rights, "", "b"));
        Rights apart = Rights.Of([GrantOf(GrantScope.Prefix, "a"), GrantOf(GrantScope.Prefix, "c")]);
        Assert.False(CoversRange(apart, "a", "d"));
    }

    [Fact]
    public void A_grant_inside_of_another_takes_nothing_away()
    {
        Rights rights = Rights.Of([GrantOf(GrantScope.Prefix, "a"), GrantOf(GrantScope.Key, "ab")]);
        Assert.True(CoversRange(rights, "a", "b"));
    }

    [Fact]
    public void An_empty_range_needs_its_start()
    {
        Rights rights = Of(GrantScope.Prefix, "a");
        Assert.True(CoversRange(rights, "ab", "ab"));
        Assert.False(CoversRange(rights, "b", "b"));
        Assert.False(CoversRange(rights, "", ""));
    }

    [Theory]
    [InlineData("a", true)]
    [InlineData("ab", true)]
    [InlineData("", false)]
    [InlineData("b", false)]
    public void A_prefix_is_covered_when_all_its_names_are(string prefix, bool covers) =>
        Assert.Equal(covers, Of(GrantScope.Prefix, "a")
            .CoversPrefix(Permissions.Read, Durability.Persistent, AccessCommand.Bytes(prefix)));

    [Fact]
    public void A_key_covers_no_prefix()
    {
        Assert.False(Of(GrantScope.Key, "a").CoversPrefix(Permissions.Read, Durability.Persistent, "a"u8));
        Assert.False(Of(GrantScope.Bucket, "a").CoversPrefix(Permissions.Read, Durability.Persistent, "a"u8));
        Assert.True(Of(GrantScope.Bucket, "a").CoversPrefix(Permissions.Read, Durability.Persistent, "a/"u8));
    }

    [Fact]
    public void A_bucket_is_covered_with_itself_where_it_is_a_name_of_its_own()
    {
        Assert.True(CoversBucket(Of(GrantScope.Bucket, "a"), "a"));
        Assert.True(CoversBucket(Of(GrantScope.Bucket, "a"), "a/b"));
        Assert.False(CoversBucket(Of(GrantScope.Prefix, "a/"), "a"));
        Assert.True(CoversBucket(Of(GrantScope.Prefix, "a/b/"), "a/b"));
        Assert.False(CoversBucket(Of(GrantScope.Key, "a"), "a"));
        Assert.True(CoversBucket(Of(GrantScope.Prefix, "/"), ""));
        string wide = new('b', 3_000);
        Assert.True(CoversBucket(Of(GrantScope.Bucket, wide), wide));
        Assert.False(CoversBucket(Of(GrantScope.Bucket, wide), wide + "b"));
    }

    [Fact]
    public void Each_permission_that_is_asked_for_is_needed()
    {
        Rights rights = Rights.Of(
        [
            GrantOf(GrantScope.Prefix, "a") with { Permissions = Permissions.Read | Permissions.Write },
            GrantOf(GrantScope.Prefix, "") with { Permissions = Permissions.Lock },
        ]);
        const Permissions All = Permissions.Read | Permissions.Write | Permissions.Lock;
        Assert.True(rights.Covers(All, Durability.Persistent, "a"u8));
        Assert.Equal(
            Permissions.Read,
            rights.FirstMissing(Permissions.Read | Permissions.Lock, Durability.Persistent, AskedNames.Name("b"u8)));
        Assert.Equal(
            Permissions.Script,
            rights.FirstMissing(Permissions.Read | Permissions.Script, Durability.Persistent, AskedNames.Name("a"u8)));
    }

    [Fact]
    public void A_grant_is_for_its_durabilities()
    {
        Rights rights = Rights.Of([GrantOf(GrantScope.Prefix, "") with { Levels = GrantLevels.Ephemeral }]);
        Assert.True(rights.Covers(Permissions.Read, Durability.Ephemeral, "a"u8));
        Assert.False(rights.Covers(Permissions.Read, Durability.Persistent, "a"u8));
        Assert.False(rights.Covers(Permissions.Read, default, "a"u8));
        Assert.False(rights.Covers(Permissions.Read, (Durability)3, "a"u8));
    }

    [Fact]
    public void Nothing_and_unknown_permissions_are_not_allowed()
    {
        Assert.False(Rights.All.Covers(Permissions.None, Durability.Persistent, "a"u8));
        Assert.False(Rights.All.Covers((Permissions)(1 << 8), Durability.Persistent, "a"u8));
        Assert.False(Rights.All.CoversSome(Permissions.None));
        Assert.False(Rights.None.CoversSome(Permissions.Read));
        Assert.False(Rights.None.IsAdmin);
        Assert.True(Rights.All.IsAdmin);
    }

    [Fact]
    public void Only_a_grant_on_all_names_makes_an_administrator()
    {
        Assert.True(Rights.Of([Grant.Everything with { Permissions = Permissions.Admin }]).IsAdmin);
        Assert.False(Rights.Of([Grant.Everything with { Permissions = Permissions.Data }]).IsAdmin);
        Assert.False(Rights.Of([GrantOf(GrantScope.Prefix, "a") with { Permissions = Permissions.Admin }]).IsAdmin);
        Assert.False(Rights.Of([Grant.Everything with { Levels = GrantLevels.Persistent }]).IsAdmin);
        Assert.False(Rights.Of([Grant.Everything with { Permissions = Permissions.Admin }])
            .Covers(Permissions.Read, Durability.Persistent, "a"u8));
    }

    [Fact]
    public void Questions_allocate_nothing()
    {
        Rights rights = Rights.Of(
            [GrantOf(GrantScope.Prefix, "a"), GrantOf(GrantScope.Key, "b"), GrantOf(GrantScope.Bucket, "c/d")]);
        byte[] name = Encoding.UTF8.GetBytes("c/d/e");
        byte[] set = new AccessCommand(CommandKind.Get, "c/d/e").Encode();
        bool allowed = Ask(rights, name, set);
        long before = GC.GetAllocatedBytesForCurrentThread();
        for (int i = 0; i < 100; i++)
        {
            allowed &= Ask(rights, name, set);
        }

        Assert.Equal(before, GC.GetAllocatedBytesForCurrentThread());
        Assert.True(allowed);
    }

    private static bool Ask(Rights rights, byte[] name, byte[] command) =>
        rights.Covers(Permissions.Read, Durability.Persistent, name)
            && rights.CoversPrefix(Permissions.Read, Durability.Persistent, name)
            && rights.CoversBucket(Permissions.Read, Durability.Persistent, name)
            && rights.CoversRange(Permissions.Read, Durability.Persistent, name, name, hasEnd: true)
            && Command.TryRead(command, out Command read)
            && CommandRights.Refusal(rights, in read) is null;

    private static Rights Of(GrantScope scope, string name) => Rights.Of([GrantOf(scope, name)]);

    private static Grant GrantOf(GrantScope scope, string name) =>
        new(Permissions.Read, GrantLevels.Both, scope, AccessCommand.Bytes(name));

    private static bool Covers(Rights rights, string name) =>
        rights.Covers(Permissions.Read, Durability.Persistent, AccessCommand.Bytes(name));

    private static bool CoversRange(Rights rights, string start, string? end) => rights.CoversRange(
        Permissions.Read,
        Durability.Persistent,
        AccessCommand.Bytes(start),
        AccessCommand.Bytes(end ?? ""),
        end is not null);

    private static bool CoversBucket(Rights rights, string bucket) =>
        rights.CoversBucket(Permissions.Read, Durability.Persistent, AccessCommand.Bytes(bucket));
}
