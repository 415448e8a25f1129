using Kahuna.Client.Connection;

namespace Kahuna.Client.Results;

/// <summary>How a result is read off an operation that was answered. Implemented by every result struct; called on the caller's thread.</summary>
internal interface IOperationResult<TSelf>
    where TSelf : struct, IOperationResult<TSelf>
{
    /// <summary>Builds the result. Throws <see cref="KahunaException"/> for statuses that this result has no place for.</summary>
    static abstract TSelf From(Operation answered);
}
