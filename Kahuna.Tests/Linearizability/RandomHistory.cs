using System.Globalization;

namespace Kahuna.Tests.Linearizability;

/// <summary>
/// Makes up histories of one key that are linearizable: processes call a <see cref="PlainRegister"/>, each operation
/// takes effect at a random moment between call and return, and some answers get lost. Times are ms. The seed decides
/// everything. Owned by a test.
/// </summary>
internal sealed class RandomHistory(int seed, RandomHistory.Shape shape)
{
    private readonly Random _random = new(seed);
    private int _values;

    /// <summary>The operations in the order of their calls.</summary>
    public List<HistoryOperation> Create()
    {
        List<(HistoryOperation Operation, double EffectMs)> planned = [];
        int[] freeMs = [.. Enumerable.Range(0, shape.Processes).Select(_ => _random.Next(6))];
        for (int i = 0; i < shape.Operations; i++)
        {
            int process = _random.Next(shape.Processes);
            planned.Add(Plan(process, freeMs[process]));
            freeMs[process] = (int)((planned[^1].Operation.ReturnNs ?? 0) / 1_000_000) + _random.Next(4);
        }

        // One that never got its answer occupies its process; whoever goes on is somebody else.
        List<HistoryOperation> done =
            [.. Carry(planned.OrderBy(one => one.EffectMs)).OrderBy(operation => operation.CallNs)];
        return [.. done.Select((operation, i) => operation.Outcome == HistoryOutcome.Unknown && _random.Next(2) == 0
            ? operation with { Process = shape.Processes + i, ReturnNs = null }
            : operation)];
    }

    private (HistoryOperation Operation, double EffectMs) Plan(int process, int freeMs)
    {
        int call = freeMs;
        double effect = call + _random.Next(6) + _random.NextDouble();
        int end = (int)Math.Ceiling(effect) + _random.Next(6);
        HistoryOperation operation = Draw(process, call, end);
        int chance = _random.Next(100);
        if (chance < shape.FailPercent)
        {
            return (operation.Failed(), effect);
        }

        if (chance >= 100 - shape.UnknownPercent)
        {
            bool never = _random.Next(3) == 0;
            return (operation with { Outcome = HistoryOutcome.Unknown }, never
                ? double.PositiveInfinity
                : effect + _random.Next(20));
        }

        return (operation, effect);
    }

    private IEnumerable<HistoryOperation> Carry(IEnumerable<(HistoryOperation Operation, double EffectMs)> planned)
    {
        PlainRegister register = PlainRegister.Empty;
        double expiryMs = double.PositiveInfinity;
        foreach ((HistoryOperation operation, double effectMs) in planned)
        {
            if (operation.Outcome == HistoryOutcome.Fail || double.IsPositiveInfinity(effectMs))
            {
                yield return operation with { Result = OperationResult.Unconstrained };
                continue;
            }

            if (effectMs >= expiryMs)
            {
                register = register.Expired();
                expiryMs = double.PositiveInfinity;
            }

            HistoryOperation? leaseBefore = register.Lease;
            (register, OperationResult answer) = register.Apply(operation);
            if (!ReferenceEquals(register.Lease, leaseBefore))
            {
                expiryMs = register.Lease is null
                    ? double.PositiveInfinity
                    : effectMs + register.Lease.Arguments.TtlMs!.Value + (_random.NextDouble() * shape.LatenessMs);
            }

            yield return operation with
            {
                Result = operation.Outcome == HistoryOutcome.Ok ? Thinned(answer) : OperationResult.Unconstrained,
            };
        }
    }

    /// <summary>Recorders do not keep everything.</summary>
    private OperationResult Thinned(OperationResult answer)
    {
        bool forgetsValue = _random.Next(100) < shape.ForgottenPercent;
        return answer with
        {
            Revision = _random.Next(100) < shape.RevisionPercent ? answer.Revision : null,
            HasValue = answer.HasValue && !forgetsValue,
            Value = answer.HasValue && !forgetsValue ? answer.Value : null,
            Affirmed = _random.Next(100) < shape.ForgottenPercent ? null : answer.Affirmed,
        };
    }

    private HistoryOperation Draw(int process, int call, int end)
    {
        int chance = _random.Next(100);
        if (chance < shape.CountPercent)
        {
            int by = _random.Next(-1, 3);
            return Recorded.Increment(process, call, end, 0, by: _random.Next(20) == 0 ? long.MaxValue : by);
        }

        HistoryOperation operation = _random.Next(100) switch
        {
            < 45 => Recorded.Set(process, call, end, NextValue()),
            < 80 => Recorded.Get(process, call, end, null),
            < 86 => Recorded.Exists(process, call, end, true),
            < 94 => Recorded.Delete(process, call, end),
            _ => Recorded.Extend(process, call, end, _random.Next(4) == 0 ? 0 : _random.Next(1, shape.TtlMsMax)),
        };
        if (operation.Kind == OperationKind.Set && _random.Next(100) < shape.TtlPercent)
        {
            operation = operation.For(_random.Next(1, shape.TtlMsMax));
        }

        return operation.IsRead || _random.Next(100) >= shape.ConditionPercent ? operation : WithCondition(operation);
    }

    private HistoryOperation WithCondition(HistoryOperation operation) => _random.Next(4) switch
    {
        0 when operation.Kind == OperationKind.Set => operation.IfAbsent(),
        1 => operation.IfValue(shape.DistinctValues ? $"v{_random.Next(_values + 1)}" : NextValue()),
        2 when shape.RevisionPercent > 0 => operation.IfRevision(_random.Next(1, 2 + (shape.Operations / 2))),
        _ => operation.IfPresent(),
    };

    private string? NextValue()
    {
        if (shape.DistinctValues)
        {
            return $"v{_values++}";
        }

        int chance = _random.Next(6);
        return chance == 0
            ? null
            : chance < 3
            ? _random.Next(3).ToString(CultureInfo.InvariantCulture)
            : new string((char)('a' + _random.Next(2)), 1);
    }

    /// <summary>What the histories are like. Percentages are of the operations.</summary>
    internal sealed record Shape
    {
        public required int Operations { get; init; }

        public required int Processes { get; init; }

        public int UnknownPercent { get; init; } = 18;

        public int FailPercent { get; init; } = 6;

        /// <summary>Answers with their revision.</summary>
        public int RevisionPercent { get; init; } = 60;

        /// <summary>Answers without their value, or without their yes or no.</summary>
        public int ForgottenPercent { get; init; } = 10;

        public int ConditionPercent { get; init; } = 35;

        public int CountPercent { get; init; } = 15;

        public int TtlPercent { get; init; } = 30;

        public int TtlMsMax { get; init; } = 20;

        /// <summary>How much later than its time to live a key may expire.</summary>
        public int LatenessMs { get; init; } = 4;

        /// <summary>Each set has a value of its own.</summary>
        public bool DistinctValues { get; init; }
    }
}
