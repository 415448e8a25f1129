using Microsoft.Extensions.Logging;

namespace Kahuna.Tests.Tidy.Samples.Raft;

/// <summary>Negative control: a logger.</summary>
internal sealed class Logs
{
    public ILogger? Log { get; init; }
}
