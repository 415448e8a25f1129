using System.CommandLine;
using System.Globalization;
using Kahuna.Cli.Commands.Administration;
using Kahuna.Cli.Commands.Inputs;
using Kahuna.Cli.Errors;
using Kahuna.Cli.Results;
using Kahuna.Client.Administration;
using Kahuna.Client.Outcomes;

namespace Kahuna.Cli.Commands.Cluster;

/// <summary><c>transfer</c>: moves leaderships to other nodes. Static.</summary>
internal static class TransferCommand
{
    private const string Meta = "meta";

    /// <summary>A node begins some transfers per second, and then says so.</summary>
    private static readonly TimeSpan s_pause = TimeSpan.FromSeconds(1);

    public static CliCommand Create()
    {
        Argument<string?> partition = new("partition")
        {
            Description = "Number of the partition, or 'meta' for the cluster's own records",
            Arity = ArgumentArity.ZeroOrOne,
        };
        Option<long?> to = Given.Number("--to", "The node that is to lead", min: 1);
        Option<long?> from = Given.Number("--from", "All that this node leads, as before its maintenance", min: 1);
        Option<bool> all = Given.Flag("--all", "Every group to the node that --leaders of the nodes prefers");
        return new CliCommand(
            "transfer", "Move the leadership of partitions to other nodes; needs the right admin", async call =>
            {
                Wish wish = new(
                    call.Parsed.GetValue(partition), NodeOf(call.Get(to)), NodeOf(call.Get(from)), call.Get(all));
                if ((wish.Partition is not null, wish.From is not null, wish.IsAll)
                    is not ((true, false, false) or (false, true, false) or (false, false, true)))
                {
                    throw new CliException("Give one of: a partition, --from with a node, --all.");
                }

                return wish.IsAll && wish.To is not null
                    ? throw new CliException("--all moves to the nodes that the cluster prefers; leave out --to.")
                    : await MoveAsync(call, wish).ConfigureAwait(false);
            })
        {
            partition, to, from, all,
        };
    }

    private static async Task<int> MoveAsync(CommandCall call, Wish wish)
    {
        ClusterDescription cluster = await ClusterCommands.DescribeAsync(call).ConfigureAwait(false);
        AdminClient admin = await UserCommands.AdminOf(call).ConfigureAwait(false);
        int[] targets = TargetsOf(cluster, wish);
        List<Record> records = [];
        int refused = 0;
        int moved = 0;
        foreach ((PartitionGroup group, int number) in GroupsOf(cluster, wish))
        {
            LeadershipTransfer transfer = new()
            {
                Group = group,
                Partition = number,
                From = wish.From,
                To = targets.Length == 0 ? null : targets[moved % targets.Length],
                ToPreferred = wish.IsAll,
            };
            (LeadershipMove? move, string? problem) = await TryAsync(call, admin, transfer).ConfigureAwait(false);
            moved += move is { Moved: true } ? 1 : 0;
            refused += problem is null ? 0 : 1;
            if (wish.From is null || move is null or { Moved: true })
            {
                records.Add(RecordOf(transfer, move, problem));
            }
        }

        await call.Output.WriteAllAsync(
            ["group", "partition", "moved", "leader", "previous", "problem"], records).ConfigureAwait(false);
        return refused == 0 ? ExitCode.Done : ExitCode.Refused;
    }

    /// <summary>Moves one leadership; what concerns only this one becomes a problem of its line.</summary>
    private static async Task<(LeadershipMove? Move, string? Problem)> TryAsync(
        CommandCall call, AdminClient admin, LeadershipTransfer transfer)
    {
        while (true)
        {
            try
            {
                return (await admin.TransferLeadershipAsync(transfer, call.Stop).ConfigureAwait(false), null);
            }
            catch (KahunaException refusal) when (refusal.Code == KahunaErrorCode.LimitReached)
            {
                await Task.Delay(s_pause, call.Stop).ConfigureAwait(false);
            }
            catch (KahunaException refusal) when (
                refusal.Code == KahunaErrorCode.FailedPrecondition && transfer is { From: not null, To: not null })
            {
                // Another node may do as well.
                transfer = transfer with { To = null };
            }
            catch (KahunaException refusal) when (
                refusal.Outcome == OperationOutcome.DidNotHappen
                    && refusal.Code is KahunaErrorCode.FailedPrecondition or KahunaErrorCode.ChangeConflict
                        or KahunaErrorCode.Unavailable)
            {
                return (null, refusal.Message);
            }
        }
    }

    /// <summary>The nodes that take over in turn; empty: the leader chooses.</summary>
    private static int[] TargetsOf(ClusterDescription cluster, Wish wish) =>
        wish.To is { } one ? [one]
        : wish.From is not { } from ? []
        : [.. cluster.Nodes.Where(node => node.Id != from && node.IsConnected).Select(static node => node.Id)];

    private static IEnumerable<(PartitionGroup Group, int Partition)> GroupsOf(ClusterDescription cluster, Wish wish)
    {
        if (wish.Partition == Meta)
        {
            return [(PartitionGroup.Meta, 0)];
        }

        if (wish.Partition is { } text)
        {
            return int.TryParse(text, NumberStyles.None, CultureInfo.InvariantCulture, out int number)
                ? [(PartitionGroup.Persistent, number), (PartitionGroup.Ephemeral, number)]
                : throw new CliException($"'{text}' is not the number of a partition, nor '{Meta}'.");
        }

        return
        [
            .. cluster.Partitions.Select(static partition => (PartitionGroup.Persistent, partition.Number)),
            .. cluster.Partitions.Select(static partition => (PartitionGroup.Ephemeral, partition.Number)),
            (PartitionGroup.Meta, 0),
        ];
    }

    private static Record RecordOf(LeadershipTransfer transfer, LeadershipMove? move, string? problem) => new()
    {
        { "group", transfer.Group.ToString().ToLowerInvariant() },
        { "partition", transfer.Group == PartitionGroup.Meta ? null : transfer.Partition },
        { "moved", move?.Moved ?? false },
        { "leader", move?.Leader },
        { "previous", move?.Previous },
        { "problem", problem },
    };

    private static int? NodeOf(long? number) => number is null ? null
        : number <= ushort.MaxValue ? (int)number
        : throw new CliException(
            FormattableString.Invariant($"{number} is not a node id; they are 1 to {ushort.MaxValue}."));

    /// <summary>What the command line asks for. Immutable.</summary>
    /// <param name="Partition">The partition's number, or <see cref="Meta"/>; null: all.</param>
    /// <param name="To">The next leader.</param>
    /// <param name="From">Only what this node leads.</param>
    /// <param name="IsAll">To the preferred nodes.</param>
    private sealed record Wish(string? Partition, int? To, int? From, bool IsAll);
}
