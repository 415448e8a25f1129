namespace Kahuna.Server.Partitions.Requests;

/// <summary>
/// A confirmed read whose answer has to wait until its client has taken earlier ones. It lies in a batch, which is held
/// for it, or, when its answer was held back before, in bytes of its own.
/// </summary>
/// <param name="Number">The request's number.</param>
/// <param name="Batch">The batch; null: <paramref name="Command"/>.</param>
/// <param name="Operation">Its place in the batch.</param>
/// <param name="Command">The encoded read.</param>
internal readonly record struct ParkedRead(uint Number, ClientBatch? Batch, int Operation, byte[]? Command)
{
    /// <summary>The encoded read.</summary>
    public ReadOnlySpan<byte> Bytes => Batch is { } batch ? batch.Command(batch.Operations[Operation]) : Command;
}
