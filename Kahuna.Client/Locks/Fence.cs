using Kahuna.Client.Connection;

namespace Kahuna.Client.Locks;

/// <summary>
/// What a write is to be fenced with: it is refused with <see cref="KahunaErrorCode.LockLost"/> unless the token's holder has the lock at the moment the write is applied. The lock must be in the same
/// bucket as the key (the part of a name before its last <c>/</c>) and of the same durability; another bucket, an empty name and a token below 1 are refused with
/// <see cref="KahunaErrorCode.InvalidArgument"/>. A write that is refused has changed nothing, and nothing that was sent under a token can take effect later than the next grant of the lock. A value.
/// </summary>
/// <param name="Resource">Name of the lock.</param>
/// <param name="Token">The fencing token of the grant, as <see cref="LockHandle.Token"/> tells it; 1 or greater.</param>
public readonly record struct Fence(string Resource, long Token)
{
    internal void ApplyTo(Operation operation)
    {
        ArgumentNullException.ThrowIfNull(Resource);
        operation.AddFence(Resource, Token);
    }
}
