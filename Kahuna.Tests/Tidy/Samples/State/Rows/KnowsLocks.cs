using Kahuna.Server.State.Locks;

namespace Kahuna.Tests.Tidy.Samples.State.Rows;

/// <summary>A wrong arrow: the rows know a table that lies above them.</summary>
internal sealed class KnowsLocks
{
    public LockTable? Above { get; set; }
}
