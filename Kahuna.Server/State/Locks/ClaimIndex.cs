using System.Buffers.Binary;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.Rows;

namespace Kahuna.Server.State.Locks;

/// <summary>
/// The rows of all claims by their tokens, so that a fence is checked without walking the holders of its lock: linear
/// hashing like <see cref="KeyTable"/>, under the same secret, since clients choose which of their claims stay. In
/// memory only; rebuilt while a state is loaded. Owned by one <see cref="KeyStore"/>; not thread-safe.
/// </summary>
internal sealed class ClaimIndex(HashSecret secret)
{
    private const int InitialBucketsLog2 = 4;

    private readonly ChunkedTable<Node> _nodes = new();
    private readonly ChunkedTable<int> _buckets = new();
    private uint _mask = (1u << InitialBucketsLog2) - 1;
    private int _free;

    /// <summary>Claims in the index.</summary>
    public int Count { get; private set; }

    /// <summary>Bytes of its tables.</summary>
    public long Bytes => _nodes.Bytes + _buckets.Bytes;

    /// <summary>The row of the claim that has the token; 0 when none has.</summary>
    public Row Find(FencingToken token)
    {
        if (Count == 0)
        {
            return Row.None;
        }

        int index = _buckets[BucketOf(HashOf(token))];
        while (index != 0 && _nodes[index].Token != token)
        {
            index = _nodes[index].Next;
        }

        return index == 0 ? Row.None : _nodes[index].Row;
    }

    /// <summary>Adds a claim whose token is not there.</summary>
    public void Add(FencingToken token, Row row)
    {
        if (_buckets.Count == 0)
        {
            _nodes.Add();
            while (_buckets.Count <= _mask)
            {
                _buckets.Add();
            }
        }

        int index = _free;
        if (index == 0)
        {
            index = _nodes.Add();
        }
        else
        {
            _free = _nodes[index].Next;
        }

        ref int bucket = ref _buckets[BucketOf(HashOf(token))];
        _nodes[index] = new Node { Token = token, Row = row, Next = bucket };
        bucket = index;
        if (++Count > _buckets.Count)
        {
            Split();
        }
    }

    /// <summary>Takes a claim out that is there.</summary>
    public void Remove(FencingToken token)
    {
        ref int link = ref _buckets[BucketOf(HashOf(token))];
        while (_nodes[link].Token != token)
        {
            InvariantException.Require(link != 0, "a claim that ends is in the index");
            link = ref _nodes[link].Next;
        }

        int index = link;
        link = _nodes[index].Next;
        _nodes[index] = new Node { Next = _free };
        _free = index;
        Count--;
    }

    private uint HashOf(FencingToken token)
    {
        Span<byte> bytes = stackalloc byte[sizeof(long)];
        BinaryPrimitives.WriteInt64LittleEndian(bytes, token.Value);
        return (uint)SipHash13.Hash(bytes, in secret);
    }

    private int BucketOf(uint hash)
    {
        uint bucket = hash & ((_mask << 1) | 1);
        return (int)(bucket < (uint)_buckets.Count ? bucket : hash & _mask);
    }

    /// <summary>
    /// Adds one bucket and moves those claims to it that the next bit of the hash tells apart from their neighbours.
    /// </summary>
    private void Split()
    {
        int added = _buckets.Add();
        uint bit = _mask + 1;
        int split = added - (int)bit;
        int index = _buckets[split];
        _buckets[split] = 0;
        _buckets[added] = 0;
        while (index != 0)
        {
            ref Node node = ref _nodes[index];
            int next = node.Next;
            ref int bucket = ref _buckets[(HashOf(node.Token) & bit) == 0 ? split : added];
            node.Next = bucket;
            bucket = index;
            index = next;
        }

        if ((uint)_buckets.Count == bit << 1)
        {
            _mask = (_mask << 1) | 1;
        }
    }

    private struct Node
    {
        public FencingToken Token;
        public Row Row;
        public int Next;
    }
}
