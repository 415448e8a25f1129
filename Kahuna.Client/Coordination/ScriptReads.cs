using System.Globalization;
using System.Text;
using Kahuna.Client.Outcomes;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Scripts;
using Kahuna.Wire.Scripts.Running;

namespace Kahuna.Client.Coordination;

/// <summary>
/// Reads what one run of a script asks for at the leaders, within the budget of the run. Owned by one run; not
/// thread-safe.
/// </summary>
/// <param name="coordinator">Reads keys.</param>
/// <param name="time">Until when.</param>
/// <param name="budget">What the run may read.</param>
/// <param name="guard">Looks at what is read before it is; null: all is allowed.</param>
internal sealed class ScriptReads(
    TransactionCoordinator coordinator, CommitDeadline time, ScriptBudget budget, CommandGuard? guard = null)
{
    /// <summary>
    /// Keys whose values are read first; each further request is for twice as many, as long as the values are small.
    /// </summary>
    private const int FirstValues = 64;

    private readonly KeyListing _listing = new(coordinator.Connection);
    private readonly bool _captures = coordinator.Connection.CapturesContext;

    /// <summary>What was read.</summary>
    public ScriptReadSet Seen { get; } = new();

    /// <summary>Gives the run what it needs, or the reason why it cannot have it.</summary>
    public async Task SupplyAsync(ScriptRun run, ScriptStop stop, CancellationToken ct)
    {
        if (stop == ScriptStop.NeedsKey)
        {
            await SupplyKeyAsync(run, ct).ConfigureAwait(_captures);
        }
        else
        {
            await SupplyEntriesAsync(run, stop == ScriptStop.NeedsBucket, ct).ConfigureAwait(_captures);
        }

        if (Seen.Count > Limits.TransactionItemsMax)
        {
            run.Refuse(string.Create(
                CultureInfo.InvariantCulture,
                $"the script reads more keys, prefixes and buckets than its budget of {Limits.TransactionItemsMax:N0} "
                    + $"allows"));
        }
    }

    private async Task SupplyKeyAsync(ScriptRun run, CancellationToken ct)
    {
        Durability durability = DurabilityOf(run);
        byte[] key = run.Key.ToArray();
        guard?.Invoke(new Command { Kind = CommandKind.Get, Durability = durability, Key = key });
        ByteBuffer items = ByteBuffer.Rent();
        Append(items, key, durability, run.AtRevision);
        byte[] list = items.Written.ToArray();
        items.Return();
        TransactionReply reply = await MomentReads.RunAsync(coordinator, list, time.LeftForStep, ct)
            .ConfigureAwait(_captures);
        ReadOnlySpan<byte> outcomes = reply.Outcomes.Span;
        Outcome outcome = Take(ref outcomes);
        if (outcome.Status is not (OutcomeStatus.Found or OutcomeStatus.NotFound))
        {
            run.Refuse($"the history of \"{Encoding.UTF8.GetString(key)}\" no longer holds the revision");
            return;
        }

        if (run.AtRevision == 0)
        {
            Note(key, durability, in outcome);
        }

        run.Supply(EntryOf(key, in outcome));
    }

    private async Task SupplyEntriesAsync(ScriptRun run, bool isBucket, CancellationToken ct)
    {
        Durability durability = DurabilityOf(run);
        byte[] name = run.Key.ToArray();
        Guard(name, isBucket, durability);
        ListingEnd end = Seen.Ranges >= Limits.TransactionRangesMax
            ? ListingEnd.TooManyRanges
            : await _listing.ReadAsync(
                name, isBucket, durability, (budget.Keys, Limits.TransactionRangesMax - Seen.Ranges), time, ct)
                .ConfigureAwait(_captures);
        switch (end)
        {
            case ListingEnd.Whole:
                break;
            case ListingEnd.TooManyKeys:
                run.SupplyEntries([], isWhole: false);
                return;
            case ListingEnd.TooManyRanges:
                run.Refuse($"the script reads more than {Limits.TransactionRangesMax} ranges of keys; a prefix is one, "
                    + "and a bucket is one and one more for each bucket inside of it; scan the prefix of such a "
                    + "bucket, or use several scripts");
                return;
            default:
                run.Refuse("the script looks at too many keys, deleted ones included");
                return;
        }

        // A key without '/' is of the bucket of its own name, and comes first.
        byte[][] names = isBucket && !name.Contains((byte)'/') ? [name, .. _listing.Names] : [.. _listing.Names];
        List<ScriptValue> entries = await ReadAsync(names, durability, ct).ConfigureAwait(_captures);
        foreach (KeyRange range in _listing.Ranges)
        {
            int count = entries.Count(entry => range.Contains(Encoding.UTF8.GetBytes(entry.Key)));
            Seen.Add(range, durability, count, run.Position);
        }

        run.SupplyEntries(entries, isWhole: true);
    }

    private void Guard(byte[] name, bool isBucket, Durability durability)
    {
        if (guard is null)
        {
            return;
        }

        KeyRange range = KeyListing.RangeOf(name, isBucket);
        guard(new Command
        {
            Kind = CommandKind.KeyRange,
            Flags = range.End is null ? CommandFlags.None : CommandFlags.IfValue,
            Durability = durability,
            Key = range.Start,
            ComparedValue = range.End,
        });
        if (isBucket && !name.Contains((byte)'/'))
        {
            guard(new Command { Kind = CommandKind.Get, Durability = durability, Key = name });
        }
    }

    /// <summary>
    /// Reads keys. Ends early with more bytes than a run may read, which then is an error of the run.
    /// </summary>
    private async Task<List<ScriptValue>> ReadAsync(byte[][] names, Durability durability, CancellationToken ct)
    {
        List<ScriptValue> entries = [];
        long bytes = 0;
        int step = FirstValues;
        for (int at = 0; at < names.Length && bytes <= budget.Bytes;)
        {
            byte[][] some = names[at..Math.Min(names.Length, at + step)];
            if (await TryReadAsync(some, durability, ct).ConfigureAwait(_captures) is not { } outcomes)
            {
                step = some.Length / 2;
                continue;
            }

            bytes += Take(some, durability, outcomes.Span, entries);
            at += some.Length;
            step *= 2;
        }

        return entries;
    }

    /// <summary>The outcomes of reads of keys; null when there are too many values for one reply.</summary>
    private async Task<ReadOnlyMemory<byte>?> TryReadAsync(byte[][] names, Durability durability, CancellationToken ct)
    {
        ByteBuffer items = ByteBuffer.Rent();
        foreach (byte[] name in names)
        {
            Append(items, name, durability, 0);
        }

        byte[] list = items.Written.ToArray();
        items.Return();
        try
        {
            TransactionReply reply = await MomentReads.EachAsync(coordinator, list, time, ct).ConfigureAwait(_captures);
            return reply.Outcomes;
        }
        catch (KahunaException tooLarge) when (tooLarge.Code == KahunaErrorCode.ReplyTooLarge && names.Length > 1)
        {
            return null;
        }
    }

    /// <summary>Records the keys that were read and appends the entries found. Returns the entries' bytes.</summary>
    private long Take(
        byte[][] names, Durability durability, ReadOnlySpan<byte> outcomes, List<ScriptValue> entries)
    {
        long bytes = 0;
        foreach (byte[] name in names)
        {
            Outcome outcome = Take(ref outcomes);
            Note(name, durability, in outcome);
            if (EntryOf(name, in outcome) is { } entry)
            {
                entries.Add(entry);
                bytes += entry.Cost;
            }
        }

        return bytes;
    }

    private void Note(byte[] key, Durability durability, scoped in Outcome outcome)
    {
        long revision = outcome.Status == OutcomeStatus.Found ? outcome.Revision : 0;
        Seen.Add(key, durability, revision);
    }

    private static Outcome Take(ref ReadOnlySpan<byte> outcomes) => OutcomeList.TryTake(ref outcomes, out Outcome taken)
        ? taken
        : throw OperationErrors.UnknownDescription("a read of a script");

    private static ScriptValue? EntryOf(byte[] key, scoped in Outcome outcome) =>
        outcome.Status == OutcomeStatus.Found
            ? ScriptValue.OfEntry(
                Encoding.UTF8.GetString(key),
                outcome.ValueIsNull ? null : (ReadOnlyMemory<byte>?)outcome.Value.ToArray(),
                outcome.Revision,
                outcome.Number)
            : null;

    private static Durability DurabilityOf(ScriptRun run) =>
        run.IsEphemeral ? Durability.Ephemeral : Durability.Persistent;

    private static void Append(ByteBuffer items, byte[] key, Durability durability, long atRevision) =>
        CommandList.Append(items, new Command
        {
            Kind = CommandKind.Get,
            Durability = durability,
            Key = key,
            Flags = atRevision > 0 ? CommandFlags.AtRevision : 0,
            AtRevision = atRevision,
        });
}
