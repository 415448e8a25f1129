using System.Buffers.Binary;
using System.Text;
using Kahuna.Server.Partitions.Groups;
using Kahuna.Server.Primitives;
using Kahuna.Tests.Simulation.Nodes;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Simulation.Rules;

/// <summary>
/// What the states of the nodes say of locks, whatever their callers believe and however their clocks run: who has a
/// lock may have it together, and whoever gets it has a greater token than all who had it before. Owned by one run.
/// </summary>
internal sealed class HolderRules(SimConfig config, Action<string, string> breaks)
{
    private const string Rule = "a state gives a lock to those who may have it together, in the order of their tokens";

    private readonly Seen?[] _seen = new Seen?[config.Nodes * config.Layout.Count];

    public void Ended(SimNode node)
    {
        Array.Clear(_seen, (node.Id - 1) * config.Layout.Count, config.Layout.Count);
    }

    /// <summary>After code of a node has run.</summary>
    public void Look(SimNode node, int slot, Group partition)
    {
        Seen seen = _seen[((node.Id - 1) * config.Layout.Count) + slot] ??= new Seen();
        if (seen.Applied == partition.Applied)
        {
            return;
        }

        seen.Applied = partition.Applied;
        if (partition.State.Locks.Metrics.Held == 0)
        {
            return;
        }

        ByteBuffer outcome = ByteBuffer.Rent();
        Command list = new() { Kind = CommandKind.LockList, Flags = CommandFlags.Number | CommandFlags.AtRevision };
        partition.State.Read(in list, now: default, outcome);
        Outcome.TryRead(outcome.Written, out Outcome read);
        for (ReadOnlySpan<byte> rest = read.Value; !rest.IsEmpty;)
        {
            int length = BinaryPrimitives.ReadUInt16LittleEndian(rest);
            string name = Encoding.UTF8.GetString(rest.Slice(sizeof(ushort), length));
            LockSnapshot.TryRead(rest[(sizeof(ushort) + length)..], out LockSnapshot picture);
            Check(node, name, ref picture, seen);
            rest = picture.Rest;
        }

        outcome.Return();
    }

    private void Check(SimNode node, string name, ref LockSnapshot picture, Seen seen)
    {
        (long before, HashSet<long> had) =
            seen.Holders.TryGetValue(name, out (long Greatest, HashSet<long> Tokens) known) ? known : (0, []);
        HashSet<long> has = [];
        LockMode first = default;
        long token = 0;
        while (picture.TryNext())
        {
            first = first == default(LockMode) ? picture.Mode : first;
            if (picture.Token <= token || (!had.Contains(picture.Token) && picture.Token <= before))
            {
                breaks(
                    Rule,
                    $"node {node.Id}: \"{name}\" has a holder with token {picture.Token} behind "
                        + $"{token}; {before} had it before");
            }

            token = picture.Token;
            has.Add(token);
            bool mayShare = first != LockMode.Exclusive && (first != LockMode.Permit || has.Count <= picture.Permits);
            if (picture.Mode != first || (has.Count > 1 && !mayShare))
            {
                breaks(
                    Rule,
                    $"node {node.Id}: \"{name}\" has {picture.Holders} holders, the first of them {first}, and "
                        + $"token {token} is {picture.Mode}");
            }
        }

        seen.Holders[name] = (Math.Max(before, token), has);
    }

    /// <summary>What was seen of one group in one life of a node.</summary>
    private sealed class Seen
    {
        public LogIndex Applied { get; set; }

        public Dictionary<string, (long Greatest, HashSet<long> Tokens)> Holders { get; } = [];
    }
}
