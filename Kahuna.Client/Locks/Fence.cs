using Kahuna.Client.Connection;

namespace Kahuna.Client.Locks;

/// <summary>
/// The fencing token of a write: the write is applied only while the token's holder has the lock, otherwise the call
/// fails with <see cref="KahunaErrorCode.LockLost"/> and changes nothing. A value.
/// <para>
/// The lock must have the key's durability and be in its bucket, which is the part of a name before the last <c>/</c>,
/// or the whole name when there is none: a lock <c>orders</c> fences <c>orders</c> and <c>orders/1</c>. Another bucket,
/// an empty name or a token below 1 fails with <see cref="KahunaErrorCode.InvalidArgument"/>. A write sent under a
/// token never takes effect after the next grant of the lock.
/// </para>
/// </summary>
/// <param name="Resource">Name of the lock.</param>
/// <param name="Token">The fencing token of the grant, 1 or greater: see <see cref="LockHandle.Token"/>.</param>
public readonly record struct Fence(string Resource, FencingToken Token)
{
    internal void ApplyTo(ref OperationRequest request)
    {
        ArgumentNullException.ThrowIfNull(Resource);
        request.AddFence(Resource, Token);
    }
}
