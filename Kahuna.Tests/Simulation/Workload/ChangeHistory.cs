using System.Globalization;
using System.Text;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.State;
using Kahuna.Server.State.Rows;
using Kahuna.Tests.Simulation.Nodes;
using Kahuna.Tests.Simulation.Rules;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Simulation.Workload;

/// <summary>
/// What callers did and what states hold agrees with the changes that were told: every acknowledged write is among
/// them, an atomic batch is one transaction, and a state is what its changes make. All nodes may be wrong alike, so
/// this is asked of the calls. Owned by one check.
/// </summary>
internal sealed class ChangeHistory
{
    public const string WritesRule = "every acknowledged write is told as a change";
    public const string WholeRule = "the changes of a transaction are told together";
    public const string StateRule = "a state is what its changes make";

    private readonly GroupLayout _layout;
    private readonly ChangeRules _rules;
    private readonly Action<string, string> _breaks;
    private readonly Dictionary<(bool IsEphemeral, string Key, long Revision), List<(int Slot, ToldChange Change)>>
        _told = [];

    private ChangeHistory(SimCluster cluster)
    {
        _layout = cluster.Config.Layout;
        _rules = cluster.Rules.Changes;
        _breaks = cluster.Rules.Break;
        for (int slot = 0; slot < _layout.Count; slot++)
        {
            foreach (ToldChange told in _rules.Of(slot)?.All ?? [])
            {
                (bool, string, long) at = (_layout.GroupOf(slot).IsEphemeral, told.Key, told.Revision);
                if (!_told.TryGetValue(at, out List<(int Slot, ToldChange Change)>? same))
                {
                    _told[at] = same = [];
                }

                same.Add((slot, told));
            }
        }
    }

    /// <summary>Checks a run that has ended.</summary>
    public static void Check(SimCluster cluster)
    {
        ChangeHistory history = new(cluster);
        Call[] writes =
        [
            .. cluster.History.Calls.Where(static call =>
                call is { Outcome: CallOutcome.Ok, Done: true, Revision: > 0 }
                && call.Kind is CallKind.Set or CallKind.Increment or CallKind.Delete),
        ];
        foreach (Call write in writes)
        {
            history.CheckTold(write);
        }

        foreach (IGrouping<(int, long), Call> batch in writes.Where(static call => call.IsAtomic)
            .GroupBy(static call => (call.Process / 1_000, call.CallNs)))
        {
            history.CheckTogether([.. batch]);
        }

        foreach (SdkWatch watch in cluster.SdkWatches)
        {
            history.CheckNow(watch, writes);
        }

        ILookup<bool, string> keys = cluster.History.Calls.ToLookup(
            static call => call.IsEphemeral, static call => call.Key);
        for (int slot = 0; slot < history._layout.Count; slot++)
        {
            if (history._rules.Of(slot) is { IsWhole: true } changes)
            {
                HashSet<string> names = [.. keys[history._layout.GroupOf(slot).IsEphemeral]];
                history.CheckState(cluster.Nodes[0], slot, changes, names);
            }
        }
    }

    private void CheckTold(Call write)
    {
        List<(int Slot, ToldChange Change)> told = ToldOf(write);
        if (!write.IsAtomic && told is [{ Change: { Transaction: > 0 } alone }])
        {
            _breaks(WholeRule, $"{write.Kind} of {write.Name} by {write.Process} was told as {alone}");
        }

        string? value = write.Kind == CallKind.Increment
            ? write.Number?.ToString(CultureInfo.InvariantCulture)
            : write.Value;
        ChangeKind kind = write.Kind == CallKind.Delete ? ChangeKind.Deleted : ChangeKind.Written;
        if (told.Exists(at => at.Change.Kind == kind && (kind == ChangeKind.Deleted || at.Change.Value == value))
            || !IsWhole(write.IsEphemeral))
        {
            return;
        }

        string found = string.Join(", ", told.Select(static at => at.Change.ToString()));
        _breaks(
            WritesRule,
            $"{write.Kind} of {write.Name} by {write.Process} made revision {write.Revision}; told was: {found}");
    }

    /// <summary>
    /// A watch from now is not told what was acknowledged before it was asked for, and is told what is asked for after
    /// it has begun.
    /// </summary>
    private void CheckNow(SdkWatch watch, Call[] writes)
    {
        if (watch.Began is not { } began)
        {
            return;
        }

        bool isEphemeral = watch.Keys.Durability == Durability.Ephemeral;
        foreach (Call write in writes.Where(call => call.IsEphemeral == isEphemeral
            && (call.ReturnNs < began.CallNs || call.CallNs > began.BegunNs)))
        {
            // A repeated call may tell of an earlier write.
            if (ToldOf(write) is not [(_, { } told)] || write.IsKeyed || write.SequenceKey is not null)
            {
                continue;
            }

            bool isTold = !began.At.Covers(told.Point);
            if (isTold == write.ReturnNs < began.CallNs)
            {
                string when = isTold ? "acknowledged before the call" : "asked for when it had begun";
                _breaks(SdkWatch.NowRule, $"{watch.Keys}: {told} was {when}");
            }
        }
    }

    private void CheckTogether(Call[] batch)
    {
        List<(int Slot, ToldChange Change)>[] told = [.. batch.Select(ToldOf)];
        if (told.Any(static found => found.Count != 1))
        {
            // A revision of another epoch, or a part that nobody kept.
            return;
        }

        (int slot, ToldChange first) = told[0][0];
        foreach (List<(int Slot, ToldChange Change)> other in told)
        {
            if (other[0].Slot != slot || !other[0].Change.IsTogetherWith(first))
            {
                _breaks(WholeRule, $"a batch of {batch[0].Process} was told as {first} and as {other[0].Change}");
            }
        }
    }

    private void CheckState(SimNode node, int slot, GroupChanges changes, HashSet<string> names)
    {
        ulong epoch = node.ChangeLogs![slot]!.Status.Applied.Epoch;
        Dictionary<string, ToldChange> last = [];
        foreach (ToldChange told in changes.All.Where(told => told.Point.Epoch == epoch))
        {
            last[told.Key] = told;
            names.Add(told.Key);
        }

        StateMachine state = node.Loops!.Group(slot).State;
        ByteBuffer outcome = ByteBuffer.Rent();
        foreach (string name in names)
        {
            outcome.Length = 0;
            Command get = new() { Kind = CommandKind.Get, Key = Encoding.UTF8.GetBytes(name) };
            state.Read(in get, now: default, outcome);
            Outcome.TryRead(outcome.Written, out Outcome found);
            ToldChange? told = last.GetValueOrDefault(name);
            bool isWritten = told?.Kind == ChangeKind.Written;
            bool agrees = found.Status switch
            {
                OutcomeStatus.Found => isWritten && found.Revision == told!.Revision
                    && told.Value == (found.ValueIsNull ? null : Encoding.UTF8.GetString(found.Value)),

                // One that has fallen due with the last entry is removed, and told, with the next one.
                OutcomeStatus.NotFound => !isWritten || state.CountDue(state.Time, 1) > 0,
                _ => true,
            };
            if (!agrees)
            {
                _breaks(
                    StateRule,
                    $"{_layout.GroupOf(slot).Name} has {name}: {found.Status} at revision {found.Revision}, and the "
                        + $"last change told of it is {told?.ToString() ?? "none"}");
            }
        }

        outcome.Return();
    }

    private List<(int Slot, ToldChange Change)> ToldOf(Call write) =>
        _told.GetValueOrDefault((write.IsEphemeral, write.Key, write.Revision!.Value), []);

    private bool IsWhole(bool isEphemeral) => Enumerable.Range(0, _layout.Count).All(
        slot => _layout.GroupOf(slot).IsEphemeral != isEphemeral || _rules.Of(slot) is null or { IsWhole: true });
}
