using Kahuna.Tests.Tidy.Samples.Api;

namespace Kahuna.Tests.Tidy.Samples.Partitions;

/// <summary>Negative control: an arrow that points up.</summary>
internal sealed class ApiFromBelow
{
    public RaftAtAdmission? Admission { get; init; }
}
