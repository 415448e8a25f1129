using System.Text;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.State.KeyValues;
using Kahuna.Tests.Simulation.Engine;
using Kahuna.Tests.Simulation.Nodes;
using Kahuna.Tests.Simulation.Workload;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.Simulation.Rules;

/// <summary>
/// What coordinators and nodes say of transactions over several partitions: each has one decision, whoever asks for it
/// and whoever carries it out. Owned by one run.
/// </summary>
internal sealed class TransactionRules(Action<string, string> breaks)
{
    /// <summary>
    /// When nothing else is under way, the last transactions that were left end within this time: 5 s until a partition
    /// may have them aborted, 1 s until its leader looks, and twice the 3 s of a call.
    /// </summary>
    public const long SettledNs = 15_000_000_000;

    private readonly Dictionary<TransactionId, TransactionDecision> _decisions = [];
    private readonly HashSet<TransactionId> _forgotten = [];
    private readonly Dictionary<TransactionId, FencedDecision> _fenced = [];

    /// <summary>Transactions that were decided, and those of them that were aborted.</summary>
    public (int All, int Aborted) Decided =>
        (_decisions.Count, _decisions.Values.Count(static each => each == TransactionDecision.Abort));

    /// <summary>Transactions under the tokens of <see cref="WideFences"/> that were committed.</summary>
    public IEnumerable<FencedDecision> Fenced => _fenced
        .Where(pair => _decisions.GetValueOrDefault(pair.Key) == TransactionDecision.Then)
        .Select(static pair => pair.Value);

    /// <summary>Decisions that nodes have carried out by themselves, or tried to.</summary>
    public int Settled { get; set; }

    /// <summary>What a node holds for a transaction that has not ended; null: none does.</summary>
    public static string? Unsettled(IReadOnlyList<SimNode> nodes, GroupLayout layout)
    {
        foreach (SimNode node in nodes)
        {
            for (int slot = 0; slot < layout.Count; slot++)
            {
                PreparedCounts counts = node.Loops!.Group(slot).State.KeyValues.Prepared.Counts;
                HoldCounts holds = node.Loops!.Group(slot).Requests.Holds;
                if (holds != default)
                {
                    return $"node {node.Id} has {holds} in {layout.GroupOf(slot).Name}";
                }

                if (counts is { Parts: > 0 } or { Keys: > 0 } or { Undecided: > 0 })
                {
                    return $"node {node.Id} has {counts} in {layout.GroupOf(slot).Name}";
                }
            }
        }

        return null;
    }

    /// <summary>The transaction that a command decides or finishes; null for other commands.</summary>
    public static TransactionId? IdIn(scoped in Command command) =>
        command is
        {
            Kind: CommandKind.TransactionDecide or CommandKind.TransactionFinish,
            Value.Length: TransactionId.Bytes
        }
            ? TransactionId.Read(command.Value)
            : null;

    /// <summary>A node gets a command: who has a decision carried out knows it.</summary>
    public void Asked(SimNode node, scoped in Command command)
    {
        if (command.Kind is < CommandKind.TransactionPrepare or > CommandKind.TransactionForget
            || command.Value.Length < TransactionId.Bytes)
        {
            return;
        }

        TransactionId id = TransactionId.Read(command.Value);
        node.Scheduler.Note(
            SimEvent.Transaction,
            node.Id,
            (long)id.High,
            words: $"{command.Kind} {(TransactionDecision)command.Number} of {Encoding.UTF8.GetString(command.Key)}");
        switch (command.Kind)
        {
            case CommandKind.TransactionPrepare when !_fenced.ContainsKey(id):
                NoteFence(id, in command);
                break;
            case CommandKind.TransactionDecide
                when (TransactionDecision)command.Number == TransactionDecision.Then
                    && _fenced.TryGetValue(id, out FencedDecision? fenced):
                fenced.AskedNs = Math.Min(fenced.AskedNs, node.Scheduler.NowNs);
                break;
            case CommandKind.TransactionForget:
                for (ReadOnlySpan<byte> ids = command.Value; !ids.IsEmpty; ids = ids[TransactionId.Bytes..])
                {
                    _forgotten.Add(TransactionId.Read(ids));
                }

                break;
            case CommandKind.TransactionFinish when !_forgotten.Contains(id):
                Check(id, (TransactionDecision)command.Number, "is to be finished with");
                break;
        }
    }

    /// <summary>
    /// A leader has answered which decision counts, or that it has carried it out. Who asks late may hear of a
    /// forgotten transaction that it is aborted, because it is unknown; but then nothing of it is left to be carried
    /// out.
    /// </summary>
    public void Told(SimNode node, TransactionId id, bool isFinish, long number)
    {
        TransactionDecision decision = (TransactionDecision)number;
        node.Scheduler.Note(
            SimEvent.Transaction,
            node.Id,
            (long)id.High,
            words: $"{(isFinish ? "carried out" : "the decision is")} {decision}");
        if (isFinish || decision != TransactionDecision.Abort || !_forgotten.Contains(id))
        {
            Check(id, decision, isFinish ? "was finished with" : "was answered with");
        }
    }

    private void NoteFence(TransactionId id, scoped in Command command)
    {
        ReadOnlySpan<byte> items = CommandList.ItemsOf(in command);
        while (CommandList.TryTake(ref items, out Command item))
        {
            if (item.Kind == CommandKind.Set
                && WideFences.HolderOf(Encoding.UTF8.GetString(item.Key), Encoding.UTF8.GetString(item.Value))
                    is { } holder)
            {
                _fenced[id] = new FencedDecision(holder.Lock, holder.Token);
                return;
            }
        }
    }

    private void Check(TransactionId id, TransactionDecision decision, string how)
    {
        if (!_decisions.TryAdd(id, decision) && _decisions[id] != decision)
        {
            breaks(
                "a transaction over several partitions is decided once",
                $"transaction {id} {how} {decision}, and it was {_decisions[id]} before");
        }
    }
}
