using Kahuna.Wire.Buffers;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Partitions.Ports;

/// <summary>Counts requests that were refused before a loop had them. Any thread.</summary>
internal sealed class Refusals
{
    private readonly long[] _byStatus = new long[OperationRow.Statuses];

    /// <summary>Requests with this status.</summary>
    public long Count(OutcomeStatus status) => Volatile.Read(ref _byStatus[(int)status]);

    /// <summary>Adds one, and appends its outcome.</summary>
    /// <param name="frame">Where the outcome goes.</param>
    /// <param name="status">The status.</param>
    /// <param name="sentence">Why it is refused.</param>
    public void Write(ByteBuffer frame, OutcomeStatus status, string sentence)
    {
        Add(status);
        Outcome.WriteError(frame, status, sentence);
    }

    /// <summary>Adds one.</summary>
    public void Add(OutcomeStatus status) => Interlocked.Increment(ref _byStatus[(int)status]);
}
