using System.Globalization;
using System.Text;
using Kahuna.Server.Partitions.Groups;
using Kahuna.Tests.Simulation.Nodes;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Simulation.Workload;

/// <summary>
/// Accounts in several partitions whose sum is constant, and a tally beside each that counts what has changed it. Owned
/// by one run.
/// </summary>
internal sealed class WideBank
{
    public const int Each = 100;

    private const int AccountsMax = 4;
    private const string SumRule = "a transfer over several partitions is seen as a whole or not at all";
    private const string TallyRule = "no update is lost beside transactions over several partitions";

    private readonly int _partitions;
    private readonly int[] _counted;
    private readonly int[] _maybe;

    public WideBank(SimConfig config)
    {
        _partitions = config.Groups;
        int[] numbers = [.. Enumerable.Range(0, AccountsMax)];
        Accounts = [.. numbers.Select(i => KeyIn(i % _partitions, _partitions, $"account{i}"))];
        Tallies = [.. numbers.Select(i => KeyIn(i % _partitions, _partitions, $"tally{i}"))];
        Pair = KeyIn(_partitions - 1, _partitions, "pair");
        _counted = new int[AccountsMax];
        _maybe = new int[AccountsMax];
    }

    public string[] Accounts { get; }

    /// <summary>Beside the account of the same number, in its partition.</summary>
    public string[] Tallies { get; }

    /// <summary>A key of both durabilities, whose values are always written together.</summary>
    public string Pair { get; }

    /// <summary>Transfers that were committed, for the summary of a run.</summary>
    public int Transfers { get; set; }

    /// <summary>Scripts over several partitions that were answered.</summary>
    public int Scripts { get; set; }

    /// <summary>Reads that showed all accounts at one moment.</summary>
    public int Reads { get; set; }

    /// <summary>A key that lies in a partition.</summary>
    public static string KeyIn(int partition, int partitions, string name)
    {
        for (int i = 0; ; i++)
        {
            string key = string.Create(CultureInfo.InvariantCulture, $"wide{i}/{name}");
            if (InitialPartition.Of(key, partitions) == partition)
            {
                return key;
            }
        }
    }

    /// <summary>A tally was counted up, was not, or may have been.</summary>
    public void Counted(int tally, bool? happened)
    {
        _counted[tally] += happened == true ? 1 : 0;
        _maybe[tally] += happened is null ? 1 : 0;
    }

    /// <summary>What is wrong with the money of all accounts at one moment; null: nothing.</summary>
    public static string? CheckSum(IReadOnlyCollection<string?> money)
    {
        int found = money.Count(static each => each is not null);
        int sum = money.Sum(static each => each is null ? 0 : int.Parse(each, CultureInfo.InvariantCulture));
        return found == 0 || (found, sum) == (money.Count, money.Count * Each)
            ? null
            : string.Create(CultureInfo.InvariantCulture, $"{found} accounts with {sum} together");
    }

    /// <summary>
    /// The values of the pair at one moment. That of the ephemeral key may be lost, but it is never another one.
    /// </summary>
    public static void CheckPair(SimCluster cluster, string? persistent, string? ephemeral)
    {
        if (ephemeral is not null && ephemeral != persistent)
        {
            Break(cluster, $"a pair of both durabilities is {persistent ?? "nothing"} and {ephemeral}");
        }
    }

    public static void Break(SimCluster cluster, string words) => cluster.Rules.Break(SumRule, words);

    /// <summary>Looks at the states of a run that has come to its end.</summary>
    public void CheckEnd(SimCluster cluster)
    {
        foreach (SimNode node in cluster.Nodes)
        {
            string?[] money = [.. Accounts.Select(key => ReadAt(node, key))];
            if (CheckSum(money) is { } wrong)
            {
                Break(cluster, $"at the end node {node.Id} has {wrong}");
            }

            for (int i = 0; i < Tallies.Length; i++)
            {
                int count = int.Parse(ReadAt(node, Tallies[i]) ?? "0", CultureInfo.InvariantCulture);
                if (count < _counted[i] || count > _counted[i] + _maybe[i])
                {
                    cluster.Rules.Break(
                        TallyRule,
                        $"at the end {Tallies[i]} has {count} at node {node.Id}; {_counted[i]} were counted, and "
                            + $"{_maybe[i]} may have been");
                }
            }
        }
    }

    private string? ReadAt(SimNode node, string key)
    {
        Group group = node.Loops!.Group(InitialPartition.Of(key, _partitions));
        ByteBuffer answer = ByteBuffer.Rent();
        Command get = new()
        {
            Kind = CommandKind.Get,
            Durability = Durability.Persistent,
            Key = Encoding.UTF8.GetBytes(key),
        };
        group.State.Read(in get, now: default, answer);
        Outcome.TryRead(answer.Written, out Outcome outcome);
        string? value = outcome.Status == OutcomeStatus.Found ? Encoding.UTF8.GetString(outcome.Value) : null;
        answer.Return();
        return value;
    }
}
