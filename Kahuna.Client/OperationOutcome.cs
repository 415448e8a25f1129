namespace Kahuna.Client;

/// <summary>Whether the operation that failed has changed anything. Operations that only read never change anything and always say <see cref="DidNotHappen"/>.</summary>
public enum OperationOutcome
{
    /// <summary>Nothing was changed and nothing will be. Repeating the operation cannot apply it twice.</summary>
    DidNotHappen = 0,

    /// <summary>The change was made. Do not repeat it.</summary>
    Happened = 1,

    /// <summary>The change was made, will still be made, or never will be. Read before repeating it, or write with a condition.</summary>
    Unknown = 2,
}
