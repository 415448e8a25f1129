using System.Globalization;
using System.Text;
using Kahuna.Wire.Routing;

namespace Kahuna.Tests.Wire;

/// <summary>Which slot a key has: published, so that every client of every version agrees.</summary>
public sealed class RoutingTests
{
    // Values that other implementations of XXH64 publish in their tests.
    [Theory]
    [InlineData("", 0ul, 0xEF46DB3751D8E999ul)]
    [InlineData("a", 0ul, 15154266338359012955ul)]
    [InlineData("ab", 0ul, 7347350983217793633ul)]
    [InlineData("abc", 0ul, 0x44BC2CF5AD770999ul)]
    [InlineData("ABC", 0ul, 0xE66AE7354FCFEE98ul)]
    [InlineData("foo", 0ul, 3728699739546630719ul)]
    [InlineData("xxhash", 0ul, 0x32DD38952C4BC720ul)]
    [InlineData("01", 0ul, 0x6ED10A79B52EF0F5ul)]
    [InlineData("0123", 0ul, 0x4C33072B45647DCBul)]
    [InlineData("0123", 0x1234567890ABCDEFul, 0xE19FFF0227E3B861ul)]
    [InlineData("", 0x1234567890ABCDEFul, 0xA2F5C44D0F46C872ul)]
    [InlineData("hammer2", 0x4D617474446C6C6Eul, 0xA041BE268B5674E5ul)]
    [InlineData("This code is derived from software contributed to The DragonFly Project", 0x4D617474446C6C6Eul, 0x103C241EEDDC8D32ul)]
    public void The_hash_is_the_published_one(string text, ulong seed, ulong expected) =>
        Assert.Equal(expected, XxHash64.Hash(Encoding.UTF8.GetBytes(text), seed));

    [Theory]
    [InlineData("key", "key")]
    [InlineData("", "")]
    [InlineData("鍵", "鍵")]
    [InlineData("a/key", "a")]
    [InlineData("a/b/key", "a/b")]
    [InlineData("a/b/", "a/b")]
    [InlineData("/key", "")]
    [InlineData("/", "")]
    [InlineData("a//key", "a/")]
    [InlineData("é/鍵", "é")]
    public void The_bucket_is_the_part_before_the_last_slash_or_the_whole_key(string key, string bucket) =>
        Assert.Equal(bucket, Encoding.UTF8.GetString(KeyRouting.Bucket(Encoding.UTF8.GetBytes(key))));

    [Fact]
    public void Slots_of_keys_and_initial_owners_are_fixed()
    {
        StringBuilder text = new("key hash(bucket) slot P=1 P=2 P=3 P=8 P=16 P=256\n");
        foreach (string key in new[]
        {
            "key",
            "orders",
            "orders/1",
            "bench:0",
            "bench:1",
            "/key",
            "a/key",
            "a/other",
            "a/b/key",
            "b/key",
            "orders/2026/11/17",
            "orders/2026/12/17",
            "sessions/f3c1",
            "users/1",
            "users/1/name",
            "users/2/name",
            "é/鍵",
            new string('x', 40) + "/k",
        })
        {
            byte[] bytes = Encoding.UTF8.GetBytes(key);
            text.Append(
                CultureInfo.InvariantCulture,
                $"{key} {XxHash64.Hash(KeyRouting.Bucket(bytes)):x16} {KeyRouting.Slot(bytes)}");
            foreach (int partitions in new[] { 1, 2, 3, 8, 16, 256 })
            {
                text.Append(CultureInfo.InvariantCulture, $" {InitialPartition.Of(bytes, partitions)}");
            }

            text.Append('\n');
        }

        GoldenFile.Check("Wire/routing.txt", text.ToString());
    }

    [Fact]
    public void Buckets_spread_evenly()
    {
        int[] counts = new int[8];
        for (int i = 0; i < 80_000; i++)
        {
            string key = string.Create(CultureInfo.InvariantCulture, $"bucket-{i}/k");
            counts[InitialPartition.Of(Encoding.UTF8.GetBytes(key), 8)]++;
        }

        Assert.All(counts, count => Assert.InRange(count, 9_500, 10_500));
    }
    [Fact]
    public void Flat_names_spread_as_buckets_do()
    {
        int[] counts = new int[8];
        for (int i = 0; i < 80_000; i++)
        {
            counts[InitialPartition.Of(string.Create(CultureInfo.InvariantCulture, $"bench:{i}"), 8)]++;
        }

        Assert.All(counts, count => Assert.InRange(count, 9_500, 10_500));
    }
}
