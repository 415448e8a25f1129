namespace Kahuna;

/// <summary>
/// Whether a failed operation has changed anything. Reads change nothing and always have <see cref="DidNotHappen"/>.
/// </summary>
public enum OperationOutcome
{
    /// <summary>Nothing was changed and nothing will be. Repeating the operation cannot apply it twice.</summary>
    DidNotHappen = 0,

    /// <summary>The change was made. Do not repeat it.</summary>
    Happened = 1,

    /// <summary>
    /// The change was made, will still be made, or never will be. Read before repeating it, or write with a condition.
    /// </summary>
    Unknown = 2,
}
