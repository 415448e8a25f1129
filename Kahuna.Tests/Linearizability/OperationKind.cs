namespace Kahuna.Tests.Linearizability;

/// <summary>What an operation of a history does.</summary>
internal enum OperationKind
{
    Set,
    Get,
    Exists,
    Delete,
    Extend,
    Increment,

    /// <summary>Takes values of a sequence.</summary>
    Next,

    /// <summary>Acquires a lock: one holding of it, with its end.</summary>
    Acquire,
}
