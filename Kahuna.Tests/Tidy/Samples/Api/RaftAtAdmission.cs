using Kahuna.Server.Raft;

namespace Kahuna.Tests.Tidy.Samples.Api;

/// <summary>Negative control: the door reaches past the partitions.</summary>
internal sealed class RaftAtAdmission
{
    public RaftRole Role { get; init; }
}
