using Kahuna.Server.Partitions.Groups;

namespace Kahuna.Tests.Tidy.Samples.Partitions.Requests;

/// <summary>Negative control: the requests of a group must not know the group.</summary>
internal sealed class UsesGroup
{
    public Group? Group { get; init; }
}
