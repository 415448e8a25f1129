using System.Collections.Concurrent;
using System.Text;
using Kahuna.Wire.Routing;

namespace Kahuna.Tests;

/// <summary>Which partition holds a key under the initial map of slots. Stateless, any thread.</summary>
internal static class InitialPartition
{
    private static readonly ConcurrentDictionary<int, SlotMap> s_maps = new();

    public static int Of(ReadOnlySpan<byte> key, int partitions) =>
        s_maps.GetOrAdd(partitions, SlotMap.Initial).PartitionOf(key);

    public static int Of(string key, int partitions) => Of(Encoding.UTF8.GetBytes(key), partitions);
}
