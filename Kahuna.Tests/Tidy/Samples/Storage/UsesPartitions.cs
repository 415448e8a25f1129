using Kahuna.Server.Partitions.Ports;

namespace Kahuna.Tests.Tidy.Samples.Storage;

/// <summary>Negative control: an adapter's use of a port; it is right only while that type counts as one.</summary>
internal sealed class UsesPartitions
{
    public ILogStore? Port { get; init; }
}
