using System.Globalization;
using System.Text;
using Kahuna.Server.State.Rows;

namespace Kahuna.Tests.State.Rows;

/// <summary>Keys are found whatever their hashes and however many there are.</summary>
public sealed class KeyTableTests
{
    private static readonly HashSecret s_secret = new(1, 2);

    [Fact]
    public void Every_key_is_found_while_the_table_grows()
    {
        KeyTable table = new(new SlabAllocator(), s_secret);
        for (int i = 1; i <= 100_000; i++)
        {
            byte[] key = Key(i);
            Assert.Equal(0, table.Find(key, table.HashOf(key)).Value);
            Assert.Equal(i, table.Insert(key, table.HashOf(key), 0).Value);
            int earlier = 1 + (int)((i * 48_271L) % i);
            Assert.Equal(earlier, table.Find(Key(earlier), table.HashOf(Key(earlier))).Value);
        }

        for (int i = 1; i <= 100_000; i++)
        {
            byte[] key = Key(i);
            int index = table.Find(key, table.HashOf(key)).Value;
            Assert.Equal(i, index);
            Assert.True(table.Key(in table[new Row(index)]).SequenceEqual(key));
        }

        Assert.Equal(100_000, table.Count);
    }

    [Fact]
    public void Equal_hashes_are_told_apart_by_the_bytes()
    {
        KeyTable table = new(new SlabAllocator(), s_secret);
        for (int i = 1; i <= 3000; i++)
        {
            table.Insert(Key(i), 0xFFFF_FFFF, 3);
        }

        for (int i = 1; i <= 3000; i += 7)
        {
            Assert.Equal(i, table.Find(Key(i), 0xFFFF_FFFF).Value);
        }

        Assert.Equal(0, table.Find(Key(3001), 0xFFFF_FFFF).Value);
        Assert.Equal(0, table.Find(Key(1), 0).Value);
    }

    [Fact]
    public void A_prefix_of_a_key_is_another_key()
    {
        KeyTable table = new(new SlabAllocator(), s_secret);
        table.Insert("abc"u8, 1, 0);
        Assert.Equal(0, table.Find("ab"u8, 1).Value);
        Assert.Equal(0, table.Find("abcd"u8, 1).Value);
        Assert.Equal(1, table.Find("abc"u8, 1).Value);
    }

    private static byte[] Key(int i) => Encoding.UTF8.GetBytes("key/" + i.ToString(CultureInfo.InvariantCulture));
}
