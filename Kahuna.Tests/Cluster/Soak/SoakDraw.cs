using System.Globalization;
using Kahuna.Tests.Linearizability;
using Kahuna.Tests.Simulation.Engine;

namespace Kahuna.Tests.Cluster.Soak;

/// <summary>Draws the operations of one caller. Owned by it.</summary>
internal sealed class SoakDraw(int process, SimRandom random)
{
    private const double Ttls = 0.2;
    private const double NullValues = 0.02;
    private const double LongValues = 0.05;

    private static readonly OperationKind[] s_kinds =
    [
        OperationKind.Set,
        OperationKind.Set,
        OperationKind.Set,
        OperationKind.Get,
        OperationKind.Get,
        OperationKind.Get,
        OperationKind.Exists, OperationKind.Delete, OperationKind.Extend, OperationKind.Increment,
    ];

    /// <summary>From those that end while callers meet to those that outlive a change of leader.</summary>
    private static readonly long[] s_ttlsMs = [50, 500, 2_000, 10_000];

    private long _values;

    /// <summary>An operation that has not been called yet.</summary>
    public HistoryOperation Next(SoakKey key, HistoryOperation? latest)
    {
        OperationKind kind = random.Pick(s_kinds);
        if (key.IsCounter && kind == OperationKind.Set)
        {
            kind = OperationKind.Increment;
        }

        OperationArguments arguments = kind switch
        {
            OperationKind.Set =>
                new OperationArguments { Value = Value(), TtlMs = random.Chance(Ttls) ? random.Pick(s_ttlsMs) : null },
            OperationKind.Extend => new OperationArguments { TtlMs = random.Chance(0.2) ? 0 : random.Pick(s_ttlsMs) },
            OperationKind.Increment => new OperationArguments { By = random.Between(-3, 10) },
            _ => OperationArguments.None,
        };
        bool hasConditions = kind is OperationKind.Set or OperationKind.Delete or OperationKind.Extend;
        return new HistoryOperation
        {
            Process = process,
            Key = key.Name,
            Kind = kind,
            Arguments = hasConditions ? WithCondition(arguments, kind, latest) : arguments,
            CallNs = 0,
            Outcome = HistoryOutcome.Unknown,
        };
    }

    /// <summary>Half of the writes ask for something. What they compare with was true a moment ago.</summary>
    private OperationArguments WithCondition(OperationArguments arguments, OperationKind kind, HistoryOperation? latest)
    {
        string? value = latest?.Kind == OperationKind.Set ? latest.Arguments.Value : latest?.Result.Value;
        return random.Next(8) switch
        {
            0 when kind == OperationKind.Set => arguments with { OnlyIfAbsent = true },
            1 when kind == OperationKind.Set => arguments with { OnlyIfPresent = true },
            2 => arguments with { OnlyIfValue = true, ComparedValue = latest is null ? "v0" : value },
            3 => arguments with { OnlyIfRevision = latest?.Result.Revision ?? 1 },
            _ => arguments,
        };
    }

    /// <summary>No two are the same, so that a read tells which write it saw.</summary>
    private string? Value()
    {
        string padding = random.Chance(LongValues) ? new string('x', random.Next(3_000)) : "";
        return random.Chance(NullValues)
            ? null
            : string.Create(CultureInfo.InvariantCulture, $"v{process}.{++_values}{padding}");
    }
}
