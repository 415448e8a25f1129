using System.Text;
using Kahuna.Server.State.Rows;

namespace Kahuna.Tests.State;

/// <summary>The ordered index says what a sorted set of the same keys says.</summary>
public sealed class OrderedIndexTests
{
    private readonly KeyTable _keys = new(new SlabAllocator(), new HashSecret(1, 2));
    private readonly OrderedIndex _index;

    public OrderedIndexTests() => _index = new OrderedIndex(_keys);

    [Theory]
    [InlineData(1, 2, 4)]
    [InlineData(2, 4, 12)]
    [InlineData(3, 256, 3)]
    [InlineData(4, 60, 2)]
    [InlineData(5, 1, 40)]
    [InlineData(6, 18, 6)]
    public void Random_keys_come_in_the_order_of_their_bytes(int seed, int labels, int lengthMax)
    {
        Random random = new(seed);
        SortedDictionary<byte[], Row> model = new(ByBytes.Instance);
        for (int step = 0; step < 20_000; step++)
        {
            byte[] key = Draw(random, labels, lengthMax);
            bool grows = step % 4_000 < 2_500;
            if (model.TryGetValue(key, out Row row))
            {
                if (!grows || random.Next(3) == 0)
                {
                    _index.Remove(row);
                    _keys.Free(row);
                    model.Remove(key);
                }
            }
            else if (grows || random.Next(3) == 0)
            {
                row = _keys.Insert(key, _keys.HashOf(key), 0);
                _index.Add(row);
                model.Add(key, row);
            }

            if (step % 500 == 0 || model.Count < 5)
            {
                Compare(model, Draw(random, labels, lengthMax), random.Next(2) == 0, random.Next(1, 50));
                Compare(model, model.Count == 0 ? key : model.Keys.ElementAt(random.Next(model.Count)), true, 7);
                Compare(model, model.Count == 0 ? key : model.Keys.ElementAt(random.Next(model.Count)), false, 7);
            }
        }

        Compare(model, [], true, int.MaxValue / 2);
        foreach (Row row in model.Values)
        {
            _index.Remove(row);
        }

        Assert.Equal(0, _index.Count);
        Assert.Empty(Ascending([], true, 10));
    }

    [Fact]
    public void Each_key_may_begin_with_the_one_before()
    {
        string all = new('a', 1_024);
        List<Row> rows = [];
        foreach (int length in Enumerable.Range(1, 1_024).OrderBy(static length => length * 7919 % 1_031))
        {
            rows.Add(Add(all[..length]));
        }

        Assert.Equal(
            Enumerable.Range(500, 100), Ascending(Bytes(all[..500]), true, 100).Select(static key => key.Length));
        Assert.Equal(
            Enumerable.Range(401, 99).Reverse(),
            Descending(Bytes(all[..500]), false, 99).Select(static key => key.Length));
        rows.ForEach(_index.Remove);
        Assert.Empty(Ascending([], true, 1));
    }

    [Fact]
    public void Room_of_a_million_keys_is_small()
    {
        for (int i = 0; i < 1_000_000; i++)
        {
            Add($"users/{i * 7919L % 1_000_003:00000000}");
        }

        Assert.InRange(_index.Bytes / (double)_index.Count, 1, 30);
    }

    private static byte[] Draw(Random random, int labels, int lengthMax)
    {
        byte[] key = new byte[random.Next(1, lengthMax + 1)];
        for (int i = 0; i < key.Length; i++)
        {
            key[i] = (byte)(random.Next(labels) * 255 / Math.Max(1, labels - 1));
        }

        return key;
    }

    private void Compare(SortedDictionary<byte[], Row> model, byte[] from, bool isInclusive, int count)
    {
        int low = isInclusive ? 0 : 1;
        Assert.Equal(
            model.Keys.Where(key => ByBytes.Instance.Compare(key, from) >= low).Take(count),
            Ascending(from, isInclusive, count));
        Assert.Equal(
            model.Keys.Reverse()
                .Where(key => from.Length == 0 || ByBytes.Instance.Compare(key, from) <= -low)
                .Take(count),
            Descending(from, isInclusive, count));
    }

    private List<byte[]> Ascending(byte[] from, bool isInclusive, int count)
    {
        Row[] rows = new Row[Math.Min(count, _index.Count + 1)];
        return [.. rows[.._index.Ascend(from, isInclusive, rows)].Select(row => _keys.Key(in _keys[row]).ToArray())];
    }

    private List<byte[]> Descending(byte[] from, bool isInclusive, int count)
    {
        Row[] rows = new Row[Math.Min(count, _index.Count + 1)];
        return [.. rows[.._index.Descend(from, isInclusive, rows)].Select(row => _keys.Key(in _keys[row]).ToArray())];
    }

    private Row Add(string key)
    {
        byte[] bytes = Bytes(key);
        Row row = _keys.Insert(bytes, _keys.HashOf(bytes), 0);
        _index.Add(row);
        return row;
    }

    private static byte[] Bytes(string text) => Encoding.UTF8.GetBytes(text);

    private sealed class ByBytes : IComparer<byte[]>
    {
        public static readonly ByBytes Instance = new();

        public int Compare(byte[]? x, byte[]? y) => Math.Sign(x.AsSpan().SequenceCompareTo(y));
    }
}
