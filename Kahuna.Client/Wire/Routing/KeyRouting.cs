namespace Kahuna.Wire.Routing;

/// <summary>
/// Maps keys to buckets and partitions, as published: XXH64 (seed 0) of the bucket's bytes, modulo the number of
/// partitions. Stateless, any thread.
/// </summary>
internal static class KeyRouting
{
    /// <summary>The part of a key before its last '/'; empty when there is none.</summary>
    public static ReadOnlySpan<byte> Bucket(ReadOnlySpan<byte> key)
    {
        int slash = key.LastIndexOf((byte)'/');
        return slash < 0 ? default : key[..slash];
    }

    /// <summary>The partition, 0 to <paramref name="partitions"/> - 1, that holds a key.</summary>
    public static int Partition(ReadOnlySpan<byte> key, int partitions) =>
        partitions == 1 ? 0 : (int)(XxHash64.Hash(Bucket(key)) % (uint)partitions);
}
