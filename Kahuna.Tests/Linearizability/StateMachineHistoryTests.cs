using Kahuna.Tests.State;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Linearizability;

/// <summary>
/// The checker's rules are those of the state machine: what that answers is linearizable, and any other answer is not.
/// </summary>
public sealed class StateMachineHistoryTests
{
    /// <summary>
    /// Operations come at even times and times to live are odd, so that no operation falls on the very moment of an
    /// expiry.
    /// </summary>
    private static readonly CheckerOptions s_exact =
        new() { TtlSlack = TimeSpan.Zero, TtlLatenessMax = TimeSpan.Zero, ExplainTimeMax = TimeSpan.Zero };

    [Fact]
    public void What_the_state_machine_answers_is_linearizable()
    {
        HashSet<OutcomeStatus> seen = [];
        for (int seed = 0; seed < 60; seed++)
        {
            List<HistoryOperation> history = Record(seed, History.OperationsPerKeyMax, seen);
            Assert.True(LinearizabilityChecker.Check(history, s_exact).Verdict == Verdict.Linearizable, $"seed {seed}");
        }

        Assert.Equal(
            [
                OutcomeStatus.Applied,
                OutcomeStatus.Found,
                OutcomeStatus.NotFound,
                OutcomeStatus.ConditionFailed,
                OutcomeStatus.NotAnInteger,
                OutcomeStatus.Overflow,
            ],
            seen.Order());
    }

    [Fact]
    public void Any_other_answer_is_not()
    {
        for (int seed = 0; seed < 10; seed++)
        {
            List<HistoryOperation> history = Record(seed, 60, []);

            // The last one may tell any higher revision if it makes a key: nothing comes after it that would know
            // better.
            for (int at = 0; at < history.Count - 1; at++)
            {
                HistoryOperation operation = history[at];
                foreach (OperationResult wrong in OtherAnswers(operation.Result))
                {
                    List<HistoryOperation> changed = [.. history];
                    changed[at] = operation with { Result = wrong };
                    Assert.True(
                        LinearizabilityChecker.Check(changed, s_exact).Verdict == Verdict.NotLinearizable,
                        $"seed {seed}, operation {at}: {operation.Kind} may have been answered with {wrong}");
                }
            }
        }
    }

    private static IEnumerable<OperationResult> OtherAnswers(OperationResult result)
    {
        OperationResult none = OperationResult.Unconstrained;
        yield return none with { Affirmed = !result.Affirmed };
        yield return none with { Revision = result.Revision + 1 };
        if (result.Revision > 0)
        {
            yield return none with { Revision = result.Revision - 1 };
        }

        if (result.HasValue)
        {
            yield return none with { HasValue = true, Value = result.Value is "17" ? "18" : "17" };
        }
    }

    /// <summary>
    /// One operation after the other, each at its own moment of cluster time, which is the time of the history.
    /// </summary>
    private static List<HistoryOperation> Record(int seed, int count, HashSet<OutcomeStatus> seen)
    {
        Random random = new(seed);
        StateDriver state = new() { Now = 0 };
        List<HistoryOperation> history = [];
        for (int i = 0; i < count; i++)
        {
            state.Now += 2 * random.Next(1, 8);
            TestCommand command = Draw(random, state.Get(Recorded.Key));
            Answer answer = state.Do(command);
            seen.Add(answer.Status);
            history.Add(Translate(command, answer, state.Now));
        }

        return history;
    }

    private static TestCommand Draw(Random random, Answer current)
    {
        CommandFlags Sometimes(CommandFlags flag) => random.Next(5) == 0 ? flag : CommandFlags.None;
        TestCommand command = random.Next(10) switch
        {
            < 3 => new TestCommand(CommandKind.Set, Recorded.Key, DrawValue(random))
            {
                Flags = Sometimes(CommandFlags.Ttl) | Sometimes(CommandFlags.Ttl),
            },
            3 => new TestCommand(CommandKind.Delete, Recorded.Key),
            4 => new TestCommand(CommandKind.Extend, Recorded.Key) { Flags = CommandFlags.Ttl },
            < 7 => new TestCommand(CommandKind.Increment, Recorded.Key)
            {
                Flags = CommandFlags.Number,
                Number = random.Next(6) == 0 ? long.MaxValue : random.Next(-3, 4),
            },
            7 => new TestCommand(CommandKind.Exists, Recorded.Key),
            _ => new TestCommand(CommandKind.Get, Recorded.Key),
        };
        if (command.Kind is CommandKind.Get or CommandKind.Exists)
        {
            return command;
        }

        bool absent = command.Kind == CommandKind.Set && random.Next(6) == 0;
        return command with
        {
            TtlMs = command.Kind == CommandKind.Extend && random.Next(4) == 0 ? 0 : (2 * random.Next(20)) + 1,
            Flags = command.Flags
                | (
                    absent
                        ? CommandFlags.IfAbsent
                        : Sometimes(CommandFlags.IfPresent)
                            | Sometimes(CommandFlags.IfValue)
                            | Sometimes(CommandFlags.IfRevision)),
            Compared = random.Next(3) == 0 || current.IsNull ? null : current.Value ?? "a",
            ComparedRevision = Math.Max(1, current.Revision - random.Next(2)),
        };
    }

    private static string? DrawValue(Random random) => random.Next(5) switch
    {
        0 => null,
        1 => "9223372036854775806",
        2 => "a",
        3 => "+1",
        _ => "12",
    };

    private static HistoryOperation Translate(TestCommand command, Answer answer, long timeMs)
    {
        bool affirmed = answer.Status is OutcomeStatus.Applied or OutcomeStatus.Found;
        OperationResult result = new() { Affirmed = affirmed, Revision = answer.Revision };
        if (affirmed && command.Kind is CommandKind.Get or CommandKind.Increment && affirmed)
        {
            result = result with
            {
                HasValue = true,
                Value = command.Kind == CommandKind.Increment
                    ? answer.Number.ToString()
                    : answer.IsNull
                    ? null
                    : answer.Value,
            };
        }

        return new HistoryOperation
        {
            Process = 1,
            Key = command.Key,
            Kind = Enum.Parse<OperationKind>(command.Kind.ToString()),
            Arguments = new OperationArguments
            {
                Value = command.Value,
                OnlyIfAbsent = command.Flags.HasFlag(CommandFlags.IfAbsent),
                OnlyIfPresent = command.Flags.HasFlag(CommandFlags.IfPresent),
                OnlyIfValue = command.Flags.HasFlag(CommandFlags.IfValue),
                ComparedValue = command.Compared,
                OnlyIfRevision = command.Flags.HasFlag(CommandFlags.IfRevision) ? command.ComparedRevision : null,
                TtlMs = command.Flags.HasFlag(CommandFlags.Ttl) ? command.TtlMs : null,
                By = command.Number,
            },
            CallNs = timeMs * 1_000_000,
            ReturnNs = timeMs * 1_000_000,
            Outcome = HistoryOutcome.Ok,
            Result = result,
        };
    }
}
