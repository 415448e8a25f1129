using Kahuna.Benchmark.Targets;

namespace Kahuna.Benchmark.Workloads;

/// <summary>
/// Turns random numbers into the requests of one worker and sends them; the same numbers give the same requests. Owned
/// by its worker, which has one request at a time. Allocates nothing per request.
/// </summary>
internal abstract class Requester
{
    /// <summary>Which of <see cref="Workload.Rows"/> the latest request belongs to.</summary>
    public int Row { get; protected set; }

    /// <summary>
    /// The moment from which the latest request is measured, in clock ticks; null: from its beginning. Only a closed
    /// loop asks for it: in an open loop a request is measured from the moment at which it was due.
    /// </summary>
    public long? MeasuredFrom { get; protected set; }

    /// <summary>The moment to which it is measured; null: to its end.</summary>
    public long? MeasuredTo { get; protected set; }

    /// <summary>Sends the request that <paramref name="draw"/> chooses. A failure is an exception.</summary>
    public abstract ValueTask<OperationResult> SendAsync(Draw draw);
}
