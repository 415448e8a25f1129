namespace Kahuna.Client.Connection;
/// <summary>Stream.</summary>
internal sealed class NodeStream
{
    public OperationOutcome Withdraw(Operation operation) => operation.IsRead ? OperationOutcome.DidNotHappen : OperationOutcome.Unknown;
}
/// <summary>Link.</summary>
internal sealed class NodeLink;
