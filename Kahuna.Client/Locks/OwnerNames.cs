namespace Kahuna.Client.Locks;

/// <summary>Names for owners of locks, no two alike in the world: a random number of this client, and a count. Any thread.</summary>
/// <param name="newId">Gives the random number, at the first use.</param>
internal sealed class OwnerNames(Func<ulong> newId)
{
    /// <summary>Length of a name, in characters of ASCII.</summary>
    public const int Bytes = 32;

    private ulong _id;
    private ulong _count;

    /// <summary>Writes the next name.</summary>
    public void Write(Span<byte> target)
    {
        if (Volatile.Read(ref _id) == 0)
        {
            Interlocked.CompareExchange(ref _id, newId(), 0);
        }

        _id.TryFormat(target, out _, "x16");
        Interlocked.Increment(ref _count).TryFormat(target[(Bytes / 2)..], out _, "x16");
    }
}
