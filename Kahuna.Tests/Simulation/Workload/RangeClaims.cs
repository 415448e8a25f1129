using System.Globalization;
using System.Text;
using Kahuna.Tests.Simulation.Nodes;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Simulation.Workload;

/// <summary>
/// What callers know of the claims and the auctions of a run, which phantoms would break. Every few seconds a new round
/// begins, whose keys lie in all partitions. Owned by one run.
/// </summary>
internal sealed class RangeClaims
{
    private const string ClaimRule = "a round is claimed once";
    private const string SealRule = "a transaction sees each key that came before it, and none that went";

    /// <summary>For so long a round goes on.</summary>
    private const long RoundNs = 2_000_000_000;

    private readonly Dictionary<long, string> _claimedBy = [];
    private readonly Dictionary<long, HashSet<string>> _came = [];
    private readonly Dictionary<long, HashSet<string>> _went = [];

    /// <summary>Rounds that were claimed, for the summary of a run.</summary>
    public int Claims => _claimedBy.Count;

    /// <summary>Rounds that were sealed, for the summary of a run.</summary>
    public int Seals { get; set; }

    public static long RoundAt(long nowNs) => nowNs / RoundNs;

    public static string ClaimsOf(long round) => Name("claim", round, ".");

    public static string BidsOf(long round) => Name("bid", round, ".");

    public static string SealOf(long round) => Name("seal", round, "/x");

    /// <summary>A transaction that was committed has claimed the round, or has found a claim.</summary>
    public void Claimed(SimCluster cluster, long round, bool isMine, string process)
    {
        if (isMine && !_claimedBy.TryAdd(round, process))
        {
            cluster.Rules.Break(ClaimRule, string.Create(
                CultureInfo.InvariantCulture, $"round {round} belongs to {_claimedBy[round]}, and to {process} too"));
        }
    }

    /// <summary>A transaction knows that the round was claimed before it began.</summary>
    public bool IsClaimed(long round) => _claimedBy.ContainsKey(round);

    /// <summary>A transaction that was committed has found so many persistent claims.</summary>
    public void Seen(SimCluster cluster, long round, int claims, bool wasClaimed)
    {
        if (claims > 1 || (claims == 0 && wasClaimed))
        {
            cluster.Rules.Break(ClaimRule, string.Create(
                CultureInfo.InvariantCulture, $"a transaction has found {claims} claims of round {round}"));
        }
    }

    /// <summary>The bid was there before the round was sealed.</summary>
    public void CameBefore(long round, string bid) => Of(_came, round).Add(bid);

    /// <summary>The bid is being taken back: a seal may have it or not.</summary>
    public void MayGo(long round, string bid) => Of(_came, round).Remove(bid);

    /// <summary>The bid had gone before the round was sealed.</summary>
    public void WentBefore(long round, string bid) => Of(_went, round).Add(bid);

    /// <summary>Looks at the seals of a run that has come to its end.</summary>
    public void CheckEnd(SimCluster cluster)
    {
        foreach (SimNode node in cluster.Nodes)
        {
            foreach (long round in _came.Keys.Union(_went.Keys))
            {
                if (ReadAt(node, SealOf(round), cluster.Config.Groups) is { } list)
                {
                    HashSet<string> bids = [.. list.Split(' ')];
                    string? wrong = Of(_came, round).FirstOrDefault(bid => !bids.Contains(bid)) is { } missing
                        ? $"lacks {missing}"
                        : Of(_went, round).FirstOrDefault(bids.Contains) is { } gone
                        ? $"has {gone}, which was taken back"
                        : null;
                    if (wrong is not null)
                    {
                        cluster.Rules.Break(SealRule, string.Create(
                            CultureInfo.InvariantCulture, $"the seal of round {round} {wrong}"));
                    }
                }
            }
        }
    }

    private static HashSet<string> Of(Dictionary<long, HashSet<string>> sets, long round) =>
        sets.TryGetValue(round, out HashSet<string>? set) ? set : sets[round] = [];

    private static string Name(string what, long round, string end) =>
        string.Create(CultureInfo.InvariantCulture, $"{what}{round:d4}{end}");

    /// <summary>The value of a persistent key, in whichever partition it is; null: there is none.</summary>
    private static string? ReadAt(SimNode node, string key, int partitions)
    {
        string? value = null;
        for (int partition = 0; partition < partitions && value is null; partition++)
        {
            ByteBuffer answer = ByteBuffer.Rent();
            Command get = new()
            {
                Kind = CommandKind.Get,
                Durability = Durability.Persistent,
                Key = Encoding.UTF8.GetBytes(key),
            };
            node.Loops!.Group(partition).State.Read(in get, now: default, answer);
            Outcome.TryRead(answer.Written, out Outcome outcome);
            value = outcome.Status == OutcomeStatus.Found ? Encoding.UTF8.GetString(outcome.Value) : null;
            answer.Return();
        }

        return value;
    }
}
