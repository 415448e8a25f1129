using Kahuna.Server.State.Meta;

namespace Kahuna.Server.Access;

/// <summary>Why a change of the records was not made, or may not have been. Immutable.</summary>
/// <param name="Reason">The kind of the reason.</param>
/// <param name="Sentence">Says it to the caller.</param>
internal sealed record AccessProblem(AccessRefusal Reason, string Sentence);

/// <summary>The kind of a reason why a change of the records was not made.</summary>
internal enum AccessRefusal
{
    /// <summary>The request is not valid.</summary>
    InvalidArgument,

    /// <summary>The caller may no longer administer.</summary>
    PermissionDenied,

    /// <summary>There is no such user, role or token.</summary>
    NotFound,

    /// <summary>The name is taken.</summary>
    AlreadyExists,

    /// <summary>The records do not allow it now: it is the last administrator, or the role is in use.</summary>
    FailedPrecondition,

    /// <summary>There are as many as there may be.</summary>
    ResourceExhausted,

    /// <summary>Other changes came first, several times; nothing was changed.</summary>
    Conflict,

    /// <summary>No answer within the time; it may have been made, or may still be.</summary>
    Unknown,
}

/// <summary>How a change of the records ended. Immutable.</summary>
/// <param name="Value">What was made; null when there is a problem.</param>
/// <param name="Problem">Why it was not made; null: it was.</param>
internal sealed record AccessAnswer<T>(T? Value, AccessProblem? Problem)
    where T : class;

/// <summary>What is to be recorded, by one version of the records. Immutable.</summary>
/// <param name="Value">What the change makes.</param>
/// <param name="Rows">The rows; none: nothing is to be changed.</param>
/// <param name="Problem">Why it must not be made; null: it may.</param>
internal sealed record AccessPlan<T>(T? Value, IReadOnlyList<AccessRow> Rows, AccessProblem? Problem)
    where T : class
{
    /// <summary>A change.</summary>
    public AccessPlan(T value, IReadOnlyList<AccessRow> rows)
        : this(value, rows, null)
    {
    }

    /// <summary>A refusal.</summary>
    public AccessPlan(AccessProblem problem)
        : this(null, [], problem)
    {
    }

    /// <summary>A refusal with its sentence.</summary>
    public AccessPlan(AccessRefusal reason, string sentence)
        : this(new AccessProblem(reason, sentence))
    {
    }
}
