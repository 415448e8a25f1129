using System.Globalization;
using System.Text;
using Kahuna.Server.State.Rows;
using Kahuna.Tests.Wire;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.State;

/// <summary>
/// A fixed run of commands with its outcomes and digests as a golden file: a version that applies an old log in another
/// way than before changes it, and nodes of two versions would then differ.
/// </summary>
public sealed class StateTraceTests
{
    private readonly StateDriver _state = new(
        new StateLimits { HistoryPerKey = 3, HistoryAgeMs = 500, HistoryBytes = 1500 });
    private readonly StringBuilder _text = new();

    [Fact]
    public void Applying_a_log_gives_what_it_always_gave()
    {
        Do(new TestCommand(CommandKind.Set, "a/1", "one"));
        Do(new TestCommand(CommandKind.Set, "a/1", "two")
        {
            Flags = CommandFlags.IfRevision | CommandFlags.ReturnPrevious,
            ComparedRevision = 1,
        });
        Do(new TestCommand(CommandKind.Set, "a/1", "three")
        {
            Flags = CommandFlags.IfAbsent | CommandFlags.ReturnPrevious,
        });
        Do(new TestCommand(CommandKind.Set, "a/2", null) { Flags = CommandFlags.Ttl, TtlMs = 50 });
        Do(new TestCommand(CommandKind.Increment, "a/2") { Flags = CommandFlags.Number, Number = 1 });
        Do(new TestCommand(CommandKind.Increment, "n") { Flags = CommandFlags.Number, Number = 41 });
        Do(new TestCommand(CommandKind.Increment, "n") { Flags = CommandFlags.Number, Number = 1 });
        Do(new TestCommand(CommandKind.Extend, "n") { Flags = CommandFlags.Ttl, TtlMs = 60 });
        Do(new TestCommand(CommandKind.Get, "n"));
        _state.Now += 50;
        Do(new TestCommand(CommandKind.Get, "a/2"));
        Do(new TestCommand(CommandKind.Set, "a/2", "back") { Flags = CommandFlags.IfAbsent });
        _state.Now += 10;
        Do(new TestCommand(CommandKind.ExpireSweep, string.Empty) { Flags = CommandFlags.Number, Number = 10 });
        Do(new TestCommand(CommandKind.Delete, "a/1") { Flags = CommandFlags.IfValue, Compared = "other" });
        Do(new TestCommand(CommandKind.Delete, "a/1")
        {
            Flags = CommandFlags.IfValue | CommandFlags.ReturnPrevious,
            Compared = "two",
        });
        Do(new TestCommand(CommandKind.Exists, "a/1"));
        Do(new TestCommand(CommandKind.Get, "a/1") { Flags = CommandFlags.AtRevision, AtRevision = 1 });
        for (int i = 0; i < 12; i++)
        {
            Do(new TestCommand(CommandKind.Set, $"bulk/{i % 3}", new string((char)('a' + i), 40 * i))
            {
                Flags = i % 5 == 4 ? CommandFlags.WithoutHistory : CommandFlags.None,
            });
        }

        _state.Now += 501;
        Do(new TestCommand(CommandKind.Set, "a/1", "again"));
        Do(new TestCommand(CommandKind.Get, "bulk/2") { Flags = CommandFlags.AtRevision, AtRevision = 1 });
        GoldenFile.Check("State/trace.txt", _text.ToString());
    }

    private void Do(TestCommand test)
    {
        Answer answer = _state.Do(test);
        string value = answer.IsNull ? " null" : answer.Value is null ? string.Empty : $" \"{answer.Value}\"";
        StateCounts counts = _state.Machine.Counts;
        _text.Append(
            CultureInfo.InvariantCulture,
            $"{_state.Now} {test.Kind} {test.Key} {test.Flags}: {answer.Status} revision {answer.Revision} "
                + $"number {answer.Number}{value}\n")
            .Append(
                CultureInfo.InvariantCulture,
                $"    keys {counts.Keys} deleted {counts.Tombstones} history {counts.History} digest "
                    + $"{_state.Machine.Digest:x16}\n");
    }
}
