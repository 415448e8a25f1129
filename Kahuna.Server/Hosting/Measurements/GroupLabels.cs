using System.Diagnostics.Metrics;
using System.Globalization;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Hosting.Measurements;

/// <summary>The labels of the groups of a node: partition and durability. Built once; immutable; any thread.</summary>
internal sealed class GroupLabels
{
    /// <summary>The label with the number of a partition.</summary>
    public const string Partition = "kahuna.partition";

    /// <summary>The label with the durability; "meta" for the meta group.</summary>
    public const string Durability = "kahuna.durability";

    /// <summary>The label with the id of another node.</summary>
    public const string Peer = "kahuna.peer";

    private readonly KeyValuePair<string, object?>[][] _labels;

    /// <summary>The labels of these groups.</summary>
    public GroupLabels(GroupLayout layout) => _labels =
    [
        .. Enumerable.Range(0, layout.Count).Select(index => new KeyValuePair<string, object?>[]
        {
            new(Partition, layout.PartitionOf(index).ToString(CultureInfo.InvariantCulture)),
            new(Durability, NameOf(layout.GroupOf(index))),
        }),
    ];

    /// <summary>Number of groups.</summary>
    public int Count => _labels.Length;

    /// <summary>A number for each group.</summary>
    public IEnumerable<Measurement<long>> Each(Func<int, long> read)
    {
        for (int i = 0; i < _labels.Length; i++)
        {
            yield return new Measurement<long>(read(i), _labels[i]);
        }
    }

    /// <summary>Numbers for the groups that have some, each with one more label.</summary>
    public IEnumerable<Measurement<long>> Each(
        string label, Func<int, IEnumerable<(string Value, long Number)>> read)
    {
        for (int i = 0; i < _labels.Length; i++)
        {
            foreach ((string value, long number) in read(i))
            {
                yield return new Measurement<long>(number, [.. _labels[i], new(label, value)]);
            }
        }
    }

    private static string NameOf(GroupId group) =>
        group.IsMeta ? "meta" : group.IsEphemeral ? "ephemeral" : "persistent";
}
