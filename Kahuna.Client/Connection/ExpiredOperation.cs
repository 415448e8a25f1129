namespace Kahuna.Client.Connection;

/// <summary>An operation whose deadline has passed, ended by the one who found it and to be failed outside of the lock. A value.</summary>
/// <param name="Operation">The operation.</param>
/// <param name="WasSent">Its request had been handed to the writer.</param>
internal readonly record struct ExpiredOperation(Operation Operation, bool WasSent)
{
    public void Fail() => Operation.Fail(WasSent || Operation.MayHaveHappened ? Failures.NoReply(Operation) : Failures.NotSent());
}
