using System.Globalization;
using System.Numerics;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.State;

/// <summary>
/// The rules of the state written down plainly, with dictionaries and lists, to compare the real one with.
/// </summary>
internal sealed class ModelState(StateLimits limits)
{
    private readonly List<Replaced> _history = [];

    private readonly SortedSet<int> _freeRows = [];

    private long _time;
    private long _firstRevision = 1;
    private int _rowsMade;
    private int _mayDrop;
    private int? _firstRevisionRow;

    public SortedDictionary<string, Row> Rows { get; } = new(StringComparer.Ordinal);

    private long HistoryBytes => _history.Sum(static replaced => Cost(replaced.Row, replaced.Value));

    public StateCounts Counts =>
        new(Rows.Values.Count(row => !row.Deleted), Rows.Values.Count(row => row.Deleted), _history.Count, 0);

    public Answer Do(TestCommand test, long now)
    {
        if (test.Kind is CommandKind.Get or CommandKind.Exists)
        {
            return Read(test, Math.Max(now, _time));
        }

        _time = Math.Max(_time, now);
        _mayDrop = HistoryTable.DroppedPerCommand;
        DropBeyondLimit();
        DropOld(agedMax: 4, forgottenMax: 8);
        if (test.Kind == CommandKind.ExpireSweep)
        {
            return Sweep(test.Number);
        }

        Rows.TryGetValue(test.Key, out Row? row);
        if (row is not null && row.Deadline <= _time)
        {
            Remove(row, keep: true);
        }

        return Mutate(test, row);
    }

    private Answer Mutate(TestCommand test, Row? row)
    {
        bool exists = row is { Deleted: false };
        if (!exists && test.Kind is CommandKind.Delete or CommandKind.Extend && !exists)
        {
            return new Answer(OutcomeStatus.NotFound, 0, 0, null, false);
        }

        bool keep = !test.Flags.HasFlag(CommandFlags.WithoutHistory);
        bool previous = exists && test.Flags.HasFlag(CommandFlags.ReturnPrevious);
        Answer reply = new(
            OutcomeStatus.Applied,
            RevisionBefore(row) + 1,
            exists ? row!.Revision : 0,
            previous ? row!.Value ?? string.Empty : null,
            previous && row!.Value is null);
        if (!Holds(test, exists ? row : null))
        {
            return reply with { Status = OutcomeStatus.ConditionFailed, Revision = reply.Number };
        }

        switch (test.Kind)
        {
            case CommandKind.Extend:
                row!.Deadline = test.TtlMs == 0 ? null : _time + test.TtlMs;
                return new Answer(OutcomeStatus.Applied, row.Revision, 0, null, false);
            case CommandKind.Delete:
                Remove(row!, keep);
                return reply;
            case CommandKind.Increment:
                return Increment(test, row, exists, keep);
            default:
                Write(test.Key, row, test.Value, keep).Deadline = test.Flags.HasFlag(CommandFlags.Ttl)
                    ? _time + test.TtlMs
                    : null;
                return reply;
        }
    }

    private Answer Increment(TestCommand test, Row? row, bool exists, bool keep)
    {
        string text = exists ? row!.Value ?? "null" : "0";
        long revision = RevisionBefore(row);
        if (!BigInteger.TryParse(
            text, NumberStyles.AllowLeadingSign, CultureInfo.InvariantCulture, out BigInteger before)
            || before.ToString(CultureInfo.InvariantCulture) != text
                || before < long.MinValue
                || before > long.MaxValue)
        {
            return new Answer(OutcomeStatus.NotAnInteger, revision, 0, null, false);
        }

        BigInteger after = before + test.Number;
        if (after < long.MinValue || after > long.MaxValue)
        {
            return new Answer(OutcomeStatus.Overflow, revision, (long)before, null, false);
        }

        Write(test.Key, row, after.ToString(CultureInfo.InvariantCulture), keep);
        return new Answer(OutcomeStatus.Applied, revision + 1, (long)after, null, false);
    }

    private Answer Read(TestCommand test, long now)
    {
        if (!Rows.TryGetValue(test.Key, out Row? row))
        {
            return new Answer(OutcomeStatus.NotFound, 0, 0, null, false);
        }

        bool expired = row.Deadline <= now;
        long current = row.Revision + (expired ? 1 : 0);
        long at = test.AtRevision == 0 ? current : test.AtRevision;
        bool get = test.Kind == CommandKind.Get;
        if (at >= current)
        {
            return expired || row.Deleted || at > current
                ? new Answer(OutcomeStatus.NotFound, current, 0, null, false)
                : new Answer(
                    OutcomeStatus.Found,
                    current,
                    test.AtRevision != 0 ? -1 : row.Deadline - now ?? -1,
                    get ? row.Value ?? string.Empty : null,
                    get && row.Value is null);
        }

        Replaced? found = at == row.Revision
            ? Keeps(row) ? new Replaced(row, at, row.Value, row.Deleted, 0) : null
            : _history.Find(replaced => replaced.Row == row && replaced.Revision == at);
        return found is null ? new Answer(OutcomeStatus.RevisionCompacted, current, 0, null, false)
            : found.Deleted ? new Answer(OutcomeStatus.NotFound, at, 0, null, false)
            : new Answer(
                OutcomeStatus.Found, at, -1, get ? found.Value ?? string.Empty : null, get && found.Value is null);
    }

    private Answer Sweep(long countMax)
    {
        long removed = 0;
        foreach (Row row in Rows.Values.Where(row => row.Deadline <= _time)
            .OrderBy(row => row.Deadline).ThenBy(row => row.Number).ToList())
        {
            if (removed == countMax)
            {
                break;
            }

            Remove(row, keep: true);
            removed++;
        }

        DropOld((int)countMax * 2, (int)countMax * 2);
        return new Answer(OutcomeStatus.Applied, 0, removed, null, false);
    }

    private static bool Holds(TestCommand test, Row? row) =>
        !(test.Flags.HasFlag(CommandFlags.IfAbsent) && row is not null)
        && !(test.Flags.HasFlag(CommandFlags.IfPresent) && row is null)
        && !(test.Flags.HasFlag(CommandFlags.IfValue) && (row is null || row.Value != test.Compared))
        && !(test.Flags.HasFlag(CommandFlags.IfRevision) && row?.Revision != test.ComparedRevision);

    private Row Write(string key, Row? row, string? value, bool keep)
    {
        if (row is null)
        {
            row = new Row(key, TakeRow()) { Revision = _firstRevision - 1 };
            Rows.Add(key, row);
        }
        else if (keep)
        {
            Keep(row);
        }

        row.Revision++;
        row.Value = value;
        row.Deleted = false;
        return row;
    }

    private void Remove(Row row, bool keep)
    {
        if (keep)
        {
            Keep(row);
        }

        row.Revision++;
        row.Value = null;
        row.Deleted = true;
        row.Deadline = null;
    }

    private void Keep(Row row)
    {
        if (!Keeps(row))
        {
            return;
        }

        _history.Add(new Replaced(row, row.Revision, row.Value, row.Deleted, _time));
        if (_history.Count(replaced => replaced.Row == row) > limits.HistoryPerKey)
        {
            _history.Remove(_history.First(replaced => replaced.Row == row));
        }

        DropBeyondLimit();
    }

    private void DropBeyondLimit()
    {
        for (; HistoryBytes > limits.HistoryBytes && _mayDrop > 0; _mayDrop--)
        {
            _history.RemoveAt(0);
        }
    }

    private void DropOld(int agedMax, int forgottenMax)
    {
        for (int i = 0; i < agedMax && _history.Count > 0 && _time - _history[0].At > limits.HistoryAgeMs; i++)
        {
            _history.RemoveAt(0);
        }

        foreach (Row row in Rows.Values.Where(row => row.Deleted && !_history.Exists(replaced => replaced.Row == row))
            .OrderBy(row => row.Number)
            .Take(forgottenMax)
            .ToList())
        {
            Rows.Remove(row.Key);
            _freeRows.Add(row.Number);
            if (row.Revision >= _firstRevision)
            {
                _firstRevision = row.Revision + 1;
                _firstRevisionRow ??= TakeRow();
            }
        }
    }

    private int TakeRow()
    {
        int row = _freeRows.Count > 0 ? _freeRows.Min : ++_rowsMade;
        _freeRows.Remove(row);
        return row;
    }

    private long RevisionBefore(Row? row) => row?.Revision ?? _firstRevision - 1;

    private bool Keeps(Row row) =>
        limits.HistoryPerKey > 0
            && Cost(row, row.Value) <= limits.HistoryBytes
            && HistoryBytes <= limits.HistoryBytes + (limits.HistoryBytes / 4);

    private static long Cost(Row row, string? value) =>
        HistoryTable.RecordOverheadBytes + row.Key.Length + (value?.Length ?? 0);

    internal sealed class Row(string key, int number)
    {
        public string Key => key;

        /// <summary>
        /// The place in the table: the lowest that is free is taken, and of keys to be forgotten the lowest goes first.
        /// </summary>
        public int Number => number;

        public long Revision { get; set; }

        public string? Value { get; set; }

        public bool Deleted { get; set; }

        public long? Deadline { get; set; }
    }

    private sealed record Replaced(Row Row, long Revision, string? Value, bool Deleted, long At);
}
