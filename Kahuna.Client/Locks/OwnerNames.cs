namespace Kahuna.Client.Locks;

/// <summary>Generates globally unique owner names: a random number of this client and a counter. Any thread.</summary>
/// <param name="newId">Returns the random number, at the first use.</param>
internal sealed class OwnerNames(Func<ulong> newId)
{
    /// <summary>Length of a name in ASCII characters.</summary>
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
