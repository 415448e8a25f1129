using System.Globalization;
using Kahuna.Client.Outcomes;
using Kahuna.Tests.Simulation.Rules;

namespace Kahuna.Tests.Simulation.Workload;

/// <summary>
/// What is known of transactions over several partitions that count only while a lock is held, the lock being in any
/// partition. Each lock has keys of its own, which only its holders write: their values name the tokens. Owned by one
/// run.
/// </summary>
internal sealed class WideFences(int partitions)
{
    private const string DecisionRule = "a transaction under a token counts only while that has the lock";
    private const string OrderRule = "who has a lock finds what was committed under earlier tokens";
    private const int KeysEach = 2;

    private readonly Dictionary<string, List<(long Revision, long Token)>> _written = [];
    private readonly Dictionary<string, List<(long Revision, long Token)>> _seen = [];

    /// <summary>Transactions that were committed under tokens, for the summary of a run.</summary>
    public int Committed { get; set; }

    /// <summary>Transactions that were refused because the lock was lost, for the summary of a run.</summary>
    public int Refused { get; set; }

    /// <summary>The keys of a lock, in different partitions. The lock may be in one of these, or in another.</summary>
    public string[] KeysOf(string resource) =>
    [
        .. Enumerable.Range(0, KeysEach).Select(i => WideBank.KeyIn(
            (resource.Sum(static letter => letter) + i) % partitions, partitions, $"{resource} {i}")),
    ];

    /// <summary>What holders write.</summary>
    public static string ValueOf(long token, int process) =>
        string.Create(CultureInfo.InvariantCulture, $"{token} {process}");

    /// <summary>The lock and the token under which a key of a lock gets a value; null for other keys.</summary>
    public static (string Lock, long Token)? HolderOf(string key, string value)
    {
        // wide7/lock 1/lock 0: the second key of lock 1/lock.
        int start = key.IndexOf('/', StringComparison.Ordinal) + 1;
        int end = key.LastIndexOf(' ');
        return start > 0 && end > start && key[start..end].EndsWith("/lock", StringComparison.Ordinal)
            ? (key[start..end], TokenOf(value))
            : null;
    }

    /// <summary>
    /// A caller that was granted a lock has read one of its keys: what has a lower token is at no later revision.
    /// </summary>
    public void NoteRead(string key, long token, GetResult read)
    {
        ListOf(_seen, key).Add((read.Found ? read.Revision.Value : 0, token));
        if (read.Found)
        {
            ListOf(_written, key).Add((read.Revision.Value, TokenOf(read.Value.AsString()!)));
        }
    }

    /// <summary>Looks at what a run that has come to its end has noted.</summary>
    public void CheckEnd(SimCluster cluster)
    {
        ILookup<string, Call> grants = cluster.History.Calls
            .Where(static call =>
                call is { Kind: CallKind.Acquire, Outcome: CallOutcome.Ok, Mode: LockMode.Exclusive })
            .ToLookup(static call => call.Name);
        foreach (FencedDecision decision in cluster.Rules.Transactions.Fenced)
        {
            Call? later = grants[decision.Lock].FirstOrDefault(
                call => call.Token > decision.Token && call.ReturnNs < decision.AskedNs);
            if (later is not null)
            {
                cluster.Rules.Break(DecisionRule, string.Create(
                    CultureInfo.InvariantCulture,
                    $"token {decision.Token} of {decision.Lock} at {decision.AskedNs / 1e9:F3} s; {later.Process} had "
                        + $"{later.Token} before"));
            }
        }

        foreach ((string key, List<(long Revision, long Token)> all) in _seen)
        {
            foreach ((long revision, long token) in all)
            {
                (long Revision, long Token) late = ListOf(_written, key)
                    .Find(write => write.Token < token && write.Revision > revision);
                if (late != default)
                {
                    cluster.Rules.Break(OrderRule, string.Create(
                        CultureInfo.InvariantCulture,
                        $"{key}: revision {late.Revision} is of token {late.Token}, {revision} was seen with {token}"));
                }
            }
        }
    }

    private static long TokenOf(string value) =>
        long.Parse(value.AsSpan(0, value.IndexOf(' ', StringComparison.Ordinal)), CultureInfo.InvariantCulture);

    private static List<(long Revision, long Token)> ListOf(
        Dictionary<string, List<(long Revision, long Token)>> lists, string key) =>
        lists.TryGetValue(key, out List<(long Revision, long Token)>? list) ? list : lists[key] = [];
}
