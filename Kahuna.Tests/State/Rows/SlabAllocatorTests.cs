using Kahuna.Server.State.Rows;

namespace Kahuna.Tests.State.Rows;

/// <summary>Blocks never overlap, are used again, and go back when a load has passed.</summary>
public sealed class SlabAllocatorTests
{
    [Fact]
    public void Classes_hold_what_they_say_and_waste_little()
    {
        int before = -1;
        for (int bytes = 1; bytes <= SizeClasses.BytesMax; bytes += bytes < 20_000 ? 1 : bytes / 37)
        {
            int sizeClass = SizeClasses.Of(bytes);
            int room = SizeClasses.BytesOf(sizeClass);
            Assert.True(room >= bytes, $"{bytes} bytes get a block of {room}");
            Assert.True(room % 16 == 0);
            Assert.True(sizeClass >= before);
            Assert.True(
                sizeClass == 0 || SizeClasses.BytesOf(sizeClass - 1) < bytes,
                $"{bytes} bytes fit a smaller class than {sizeClass}");
            Assert.True(room - bytes < Math.Max(16, bytes / 8.0), $"{bytes} bytes waste {room - bytes}");
            before = sizeClass;
        }

        Assert.Equal(SizeClasses.Count - 1, SizeClasses.Of(SizeClasses.BytesMax));
        Assert.Equal(SizeClasses.FirstMedium, SizeClasses.Of(SizeClasses.SmallBytesMax + 1));
        Assert.Equal(SizeClasses.FirstLarge, SizeClasses.Of(SizeClasses.MediumBytesMax + 1));
    }

    [Theory]
    [InlineData(1, 300, 4000, 20_000)]
    [InlineData(2, 9000, 600, 6000)]
    [InlineData(3, 150_000, 60, 1500)]
    [InlineData(4, 1_500_000, 6, 200)]
    public void Blocks_keep_their_content_until_they_are_freed(int seed, int bytesMax, int liveMax, int steps)
    {
        Random random = new(seed);
        SlabAllocator slabs = new();
        List<(uint Block, int Bytes, byte Fill)> live = [];
        for (int step = 0; step < steps; step++)
        {
            // Phases of growth and of shrinking, so that pages and slabs fill up and empty.
            bool grow = live.Count == 0
                || (live.Count < liveMax && random.Next(10) < (step / (steps / 5) % 2 == 0 ? 8 : 3));
            if (grow)
            {
                int bytes = random.Next(1, random.Next(2) == 0 ? bytesMax : Math.Min(bytesMax, 64));
                uint block = slabs.Allocate(bytes);
                byte fill = (byte)random.Next(256);
                slabs.Span(block, 0, bytes).Fill(fill);
                live.Add((block, bytes, fill));
            }
            else
            {
                int at = random.Next(live.Count);
                Check(slabs, live[at]);
                slabs.Free(live[at].Block, live[at].Bytes);
                live[at] = live[^1];
                live.RemoveAt(live.Count - 1);
            }

            Assert.Equal(live.Count, slabs.Blocks);
        }

        foreach ((uint Block, int Bytes, byte Fill) entry in live)
        {
            Check(slabs, entry);
            slabs.Free(entry.Block, entry.Bytes);
        }

        // What stays is the few slabs kept for the next load and one page per class, never what the load took.
        Assert.Equal(0, slabs.Blocks);
        Assert.InRange(slabs.Bytes, 0, 64L << 20);
    }

    [Fact]
    public void Memory_of_one_size_serves_another_after_it_was_freed()
    {
        SlabAllocator slabs = new();
        List<uint> blocks = [];
        for (int i = 0; i < 100_000; i++)
        {
            blocks.Add(slabs.Allocate(160));
        }

        long full = slabs.Bytes;
        foreach (int bytes in new[] { 64, 1000, 20_000, 160 })
        {
            int previous = bytes switch { 64 => 160, 1000 => 64, 20_000 => 1000, _ => 20_000 };
            foreach (uint block in blocks)
            {
                slabs.Free(block, previous);
            }

            blocks.Clear();
            for (int i = 0; i < 16_000_000 / bytes; i++)
            {
                blocks.Add(slabs.Allocate(bytes));
            }

            Assert.InRange(slabs.Bytes, 0, full + (full / 2));
        }
    }

    [Fact]
    public void A_steady_load_allocates_nothing()
    {
        SlabAllocator slabs = new();
        Queue<(uint Block, int Bytes)> live = new(4096);
        Random random = new(7);
        void Load(int count)
        {
            for (int i = 0; i < count; i++)
            {
                if (live.Count == 2000)
                {
                    (uint block, int bytes) = live.Dequeue();
                    slabs.Free(block, bytes);
                }

                int length = i % 500 == 0 ? 200_000 : 16 << random.Next(8);
                live.Enqueue((slabs.Allocate(length), length));
            }
        }

        Load(40_000);
        Assert.Equal(0, AllocatedBytes.LeastOf(() => Load(4_000)));
    }

    [Fact]
    public void Nothing_is_in_use_after_the_last_block_of_each_size_is_freed()
    {
        SlabAllocator slabs = new();
        List<(uint Block, int Bytes)> live =
        [
            .. Enumerable.Range(0, SizeClasses.FirstLarge + 8)
                .Select(SizeClasses.BytesOf)
                .Select(bytes => (slabs.Allocate(bytes), bytes)),
        ];
        Assert.InRange(slabs.BytesInUse, 30 << 20, 60 << 20);
        live.ForEach(one => slabs.Free(one.Block, one.Bytes));
        Assert.InRange(slabs.BytesInUse, 0, 1 << 20);
        Assert.Equal(0, slabs.FreeBytes);
    }

    private static void Check(SlabAllocator slabs, (uint Block, int Bytes, byte Fill) entry) =>
        Assert.Equal(-1, slabs.Span(entry.Block, 0, entry.Bytes).IndexOfAnyExcept(entry.Fill));
}
