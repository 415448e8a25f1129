using System.Globalization;
using System.Text;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.Rows;

namespace Kahuna.Tests.State.Rows;

/// <summary>
/// The heap against a sorted list: the first key is always the right one, whatever is added, moved and removed.
/// </summary>
public sealed class ExpiryHeapTests
{
    [Theory]
    [InlineData(1, 10)]
    [InlineData(2, 1000)]
    [InlineData(3, 1_000_000)]
    public void The_first_is_always_the_earliest(int seed, int deadlines)
    {
        Random random = new(seed);
        KeyTable keys = new(new SlabAllocator(), default);
        ExpiryHeap heap = new(keys);
        SortedSet<(long Deadline, int Row)> model = [];
        Dictionary<int, (long Deadline, int Row)> entries = [];
        for (int i = 1; i <= 300; i++)
        {
            byte[] key = Encoding.ASCII.GetBytes("k" + i.ToString("D4", CultureInfo.InvariantCulture));
            keys.Insert(key, (uint)(i % 3), 0);
        }

        for (int step = 0; step < 20_000; step++)
        {
            int key = random.Next(1, 301);
            bool there = entries.Remove(key, out (long Deadline, int Row) old);
            Assert.Equal(there, keys[new Row(key)].ExpirySlot != 0);
            model.Remove(old);
            if (there && random.Next(2) == 0)
            {
                heap.Remove(new Row(key));
                Assert.Equal(0, keys[new Row(key)].ExpirySlot);
            }
            else
            {
                long deadline = random.Next(deadlines);
                heap.Set(new Row(key), new ClusterTime(deadline));
                Assert.Equal(deadline, heap.DeadlineOf(in keys[new Row(key)]).Ms);
                entries[key] = (deadline, key);
                model.Add(entries[key]);
            }

            Assert.Equal(model.Count, heap.Count);
            Assert.Equal(model.Count == 0 ? 0 : model.Min.Row, heap.First.Value);
        }

        while (model.Count > 0)
        {
            Assert.Equal(model.Min.Row, heap.First.Value);
            heap.Remove(heap.First);
            model.Remove(model.Min);
        }

        Assert.Equal(0, heap.First.Value);
    }
}
