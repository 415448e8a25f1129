
namespace Kahuna.Tests.Linearizability;

/// <summary>The words of the history format that stand for kinds and outcomes. Stateless; any thread.</summary>
internal static class HistoryFields
{
    private static readonly (OperationKind Kind, string Name, string Affirmed)[] s_kinds =
    [
        (OperationKind.Set, "set", "set"),
        (OperationKind.Get, "get", "found"),
        (OperationKind.Exists, "exists", "found"),
        (OperationKind.Delete, "delete", "deleted"),
        (OperationKind.Extend, "extend", "extended"),
        (OperationKind.Increment, "increment", "incremented"),
        (OperationKind.Next, "next", "taken"),
        (OperationKind.Acquire, "acquire", "granted"),
    ];

    private static readonly (HistoryOutcome Outcome, string Name)[] s_outcomes =
    [
        (HistoryOutcome.Ok, "ok"),
        (HistoryOutcome.Fail, "fail"),
        (HistoryOutcome.Unknown, "unknown"),
    ];

    private static readonly (LockMode Mode, string Name)[] s_modes =
    [
        (LockMode.Exclusive, "exclusive"),
        (LockMode.Shared, "shared"),
        (LockMode.Permit, "permit"),
    ];

    /// <summary>The kinds of operations that a key has; others are of sequences and locks.</summary>
    public static IEnumerable<OperationKind> KeyKinds =>
        s_kinds.Select(row => row.Kind).Where(kind => SubjectOf(kind) == "key");

    public static string Kinds => string.Join(", ", s_kinds.Select(row => row.Name));

    public static string Outcomes => string.Join(", ", s_outcomes.Select(row => row.Name));

    public static string Modes => string.Join(", ", s_modes.Select(row => row.Name));

    public static string NameOf(OperationKind kind) => s_kinds[(int)kind].Name;

    public static string NameOf(HistoryOutcome outcome) => s_outcomes[(int)outcome].Name;

    public static string NameOf(LockMode mode) => s_modes.First(row => row.Mode == mode).Name;

    /// <summary>What has operations of this kind.</summary>
    public static string SubjectOf(OperationKind kind) => kind switch
    {
        OperationKind.Next => "sequence",
        OperationKind.Acquire => "lock",
        _ => "key",
    };

    /// <summary>The field of a result that says yes or no.</summary>
    public static string AffirmedOf(OperationKind kind) => s_kinds[(int)kind].Affirmed;

    public static OperationKind? KindOf(string name) =>
        s_kinds.Where(row => row.Name == name).Select(row => (OperationKind?)row.Kind).FirstOrDefault();

    public static HistoryOutcome? OutcomeOf(string name) =>
        s_outcomes.Where(row => row.Name == name).Select(row => (HistoryOutcome?)row.Outcome).FirstOrDefault();

    public static LockMode? ModeOf(string name) =>
        s_modes.Where(row => row.Name == name).Select(row => (LockMode?)row.Mode).FirstOrDefault();
}
