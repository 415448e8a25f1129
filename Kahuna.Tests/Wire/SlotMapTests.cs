using System.Globalization;
using System.Text;
using Kahuna.Wire.Routing;

namespace Kahuna.Tests.Wire;

/// <summary>Which partition owns which slots: what is encoded comes back, and nothing else is taken.</summary>
public sealed class SlotMapTests
{
    [Theory]
    [InlineData(1)]
    [InlineData(2)]
    [InlineData(3)]
    [InlineData(7)]
    [InlineData(16)]
    [InlineData(256)]
    public void The_initial_map_gives_each_partition_one_run(int partitions)
    {
        SlotMap map = SlotMap.Initial(partitions);
        Assert.Equal((1UL, partitions), (map.Version, map.Partitions));
        Assert.Equal(Enumerable.Range(0, partitions), map.Ranges().Select(static range => (int)range.Partition));
        for (int slot = 0; slot < KeyRouting.Slots; slot++)
        {
            Assert.Equal(slot * partitions / KeyRouting.Slots, map[slot]);
        }
    }

    [Fact]
    public void A_key_belongs_to_the_owner_of_its_slot()
    {
        SlotMap map = Moved(SlotMap.Initial(4), KeyRouting.Slot("orders"u8), 3);
        Assert.Equal(3, map.PartitionOf("orders"u8));
        Assert.Equal(3, map.PartitionOf("orders/1"u8));
        Assert.Equal(SlotMap.Initial(4).PartitionOf("other"u8), map.PartitionOf("other"u8));
        Assert.Equal(0, SlotMap.Initial(1).PartitionOf("orders"u8));
    }

    [Fact]
    public void Random_maps_survive_the_round_trip()
    {
        Random random = new(51);
        for (int i = 0; i < 300; i++)
        {
            int partitions = random.Next(1, 257);
            SlotMap map = SlotMap.Initial(partitions);
            for (int moves = random.Next(40); moves > 0; moves--)
            {
                int first = random.Next(KeyRouting.Slots);
                map = map.Move(
                [
                    new SlotRange(
                        (ushort)first,
                        (ushort)random.Next(first, Math.Min(KeyRouting.Slots, first + 300)),
                        (ushort)random.Next(partitions)),
                ])!;
            }

            SlotMap read = SlotMap.Read(map.Encode(), map.Version, partitions)!;
            Assert.Equal(map.Version, read.Version);
            Assert.Equal(map.Ranges(), read.Ranges());
            Assert.All(Enumerable.Range(0, KeyRouting.Slots), slot => Assert.Equal(map[slot], read[slot]));
            Assert.Null(SlotMap.Read(map.Encode().AsSpan(0, map.Encode().Length - 1), map.Version, partitions));
            Assert.Null(SlotMap.Read(map.Encode().AsSpan(SlotMap.RangeBytes), map.Version, partitions));
        }
    }

    [Fact]
    public void Hostile_bytes_are_refused_and_never_throw()
    {
        Random random = new(52);
        byte[] good = SlotMap.Initial(8).Encode();
        for (int i = 0; i < 20_000; i++)
        {
            byte[] bytes = i % 2 == 0 ? [.. good] : new byte[random.Next(200)];
            if (i % 2 == 0)
            {
                bytes[random.Next(bytes.Length)] ^= (byte)(1 << random.Next(8));
            }
            else
            {
                random.NextBytes(bytes);
            }

            if (SlotMap.Read(bytes, 1, 8) is { } map)
            {
                // A changed owner makes another map; nothing else does.
                Assert.All(Enumerable.Range(0, KeyRouting.Slots), slot => Assert.InRange(map[slot], 0, 7));
            }
        }
    }

    [Theory]
    [InlineData("")]
    [InlineData("0-4094:0")]
    [InlineData("0-4096:0")]
    [InlineData("1-4095:0")]
    [InlineData("0-99:0 101-4095:1")]
    [InlineData("0-99:0 99-4095:1")]
    [InlineData("100-4095:1 0-99:0")]
    [InlineData("0-99:0 100-4095:2")]
    [InlineData("0-4095:0 0-4095:1")]
    [InlineData("99-0:0 100-4095:1")]
    public void Ranges_must_ascend_and_cover_every_slot_once(string text) =>
        Assert.Null(SlotMap.Of(1, 2, Ranges(text)));

    [Fact]
    public void A_map_has_a_version() => Assert.Null(SlotMap.Of(0, 2, Ranges("0-4095:1")));

    [Fact]
    public void A_move_is_the_next_version_or_none()
    {
        SlotMap map = SlotMap.Initial(2);
        Assert.Equal(2UL, Moved(map, 0, 1).Version);
        Assert.Equal(0, map[0]);
        Assert.Null(map.Move([new SlotRange(0, 0, 2)]));
        Assert.Null(map.Move([new SlotRange(5, 4, 1)]));
        Assert.Null(map.Move([new SlotRange(0, KeyRouting.Slots, 1)]));
        Assert.Null(map.Move([]));
    }

    [Fact]
    public void Ranges_of_commands_are_read_as_strictly()
    {
        SlotRange[] ranges = [new(3, 5, 0), new(6, 6, 0), new(4095, 4095, 0)];
        byte[] bytes = new byte[SlotRange.BytesOf(ranges)];
        SlotRange.WriteAll(bytes, ranges);
        Assert.Equal(ranges, SlotRange.ReadAll(bytes));
        Assert.Null(SlotRange.ReadAll(bytes.AsSpan(1)));
        Assert.Null(SlotRange.ReadAll([5, 0, 4, 0]));
        Assert.Null(SlotRange.ReadAll([0, 0, 0, 16]));
        Assert.Null(SlotRange.ReadAll([5, 0, 6, 0, 6, 0, 7, 0]));
    }

    [Fact]
    public void Samples_of_the_page_are_those_of_the_code()
    {
        foreach (string key in new[] { "key", "orders", "orders/1", "/key" })
        {
            byte[] bytes = Encoding.UTF8.GetBytes(key);
            string[] cells = Page.First(line => line.StartsWith($"| `{key}` |", StringComparison.Ordinal)).Split('|');
            Assert.Equal(
                (XxHash64.Hash(KeyRouting.Bucket(bytes)).ToString("x16", CultureInfo.InvariantCulture),
                    KeyRouting.Slot(bytes).ToString(CultureInfo.InvariantCulture)),
                (cells[3].Trim(), cells[4].Trim()));
        }
    }

    private static IEnumerable<string> Page => WireFormatPage.Lines();

    private static SlotMap Moved(SlotMap map, int slot, int partition) =>
        map.Move([new SlotRange((ushort)slot, (ushort)slot, (ushort)partition)])!;

    private static List<SlotRange> Ranges(string text) =>
        [.. text.Split(' ', StringSplitOptions.RemoveEmptyEntries).Select(static part =>
        {
            string[] numbers = part.Split('-', ':');
            return new SlotRange(
                ushort.Parse(numbers[0], CultureInfo.InvariantCulture),
                ushort.Parse(numbers[1], CultureInfo.InvariantCulture),
                ushort.Parse(numbers[2], CultureInfo.InvariantCulture));
        })];
}
