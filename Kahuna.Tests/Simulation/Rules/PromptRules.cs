using Kahuna.Server.Partitions.Ports;
using Kahuna.Tests.Simulation.Nodes;
using Kahuna.Tests.Simulation.Workload;

namespace Kahuna.Tests.Simulation.Rules;

/// <summary>
/// Where nothing is wrong, the calls of ordinary callers end soon and are served, whatever other clients do; and
/// answers that nobody reads take up no more than their room, wrong or not. Owned by one run.
/// </summary>
internal sealed class PromptRules(
    SimConfig config, IReadOnlyList<SimNode> nodes, AvailabilityRules availability, Action<string, string> breaks)
{
    /// <summary>
    /// A call that nothing is in the way of takes some ms; the rest is for those that wait behind others.
    /// </summary>
    private const long SoonNs = 1_000_000_000;

    /// <summary>A call goes there and back over two links, more than once when it is told of another leader.</summary>
    private const int Delays = 20;

    /// <summary>
    /// Callers share what may wait to be committed: with less room than this one of them keeps others out.
    /// </summary>
    private const long UncommittedBytesMin = 1 << 20;

    /// <summary>Answers that say that the cluster did not serve.</summary>
    private static readonly HashSet<string> s_unserved =
    [
        nameof(KahunaErrorCode.Unavailable),
        nameof(KahunaErrorCode.DeadlineExceeded),
        nameof(KahunaErrorCode.Overloaded),
        nameof(KahunaErrorCode.ConnectionLost),
        nameof(KahunaErrorCode.OutcomeUnknown),
    ];

    private readonly long _boundNs = SoonNs + (Delays * config.DelayNs);

    // Where there is little room for sessions on purpose, calls are made again until there is some.
    private readonly bool _isJudged = availability.IsJudged
        && config.UncommittedBytesMax >= UncommittedBytesMin
        && config.SessionsMax == int.MaxValue;

    /// <summary>Calls that had to end soon.</summary>
    public long Judged { get; private set; }

    /// <summary>The most that answers took up at a node.</summary>
    public long WaitingBytesMax { get; private set; }

    /// <summary>An ordinary call, which its caller has not abandoned, has ended.</summary>
    public void Ended(Call call, long nowNs)
    {
        // All idempotency keys share one room, which is small beside hostile clients: others with such keys are kept
        // out, and nobody else. While everything is healed nodes still fall over what the faults have left.
        bool isHealing = nowNs > config.Seconds * 1e9;
        bool isKeyed = call.IsKeyed || call.SequenceKey is not null;
        if (!_isJudged
            || isHealing
            || (isKeyed && config.Hostile.Count > 0)
            || availability.QuietSinceNs + availability.LimitNs > call.CallNs)
        {
            return;
        }

        Judged++;
        bool isPatient = config.RequestTimeoutMs * 1_000_000L > _boundNs;
        bool isRefused = !isKeyed && call.Error == nameof(KahunaErrorCode.SessionsFull);
        if (isRefused
            || nowNs - call.CallNs > _boundNs
            || (isPatient && call.Error is { } error && s_unserved.Contains(error)))
        {
            breaks(
                "ordinary calls end soon when nothing is wrong",
                $"{call.Kind} of {call.Name} by {call.Process} took {(nowNs - call.CallNs) / 1_000_000} ms and ended "
                    + $"with {call.Error ?? "an answer"}, and nothing was wrong since "
                    + $"{availability.QuietSinceNs / 1_000_000} ms; {_boundNs / 1_000_000} ms are enough");
        }
    }

    /// <summary>The nodes as they are 100 ms later.</summary>
    public void Look()
    {
        foreach (SimNode node in nodes)
        {
            (long bytes, int streams) = node.Waiting;
            WaitingBytesMax = Math.Max(WaitingBytesMax, bytes);
            if (bytes > config.ReplyRoomBytes + ((streams + 1L) * ReplyRoom.SmallBytes))
            {
                breaks(
                    "answers that nobody reads take up no more than their room",
                    $"node {node.Id} keeps {bytes} bytes of answers for {streams} streams; there is room for "
                        + $"{config.ReplyRoomBytes} and {ReplyRoom.SmallBytes} for each");
            }
        }
    }
}
