namespace Kahuna.Server.State.Sessions;

/// <summary>
/// How many sessions of one kind there are, and what they take up, against their own bounds. Owned by one
/// <see cref="SessionTable"/>; not thread-safe.
/// </summary>
/// <param name="countMax">Sessions that there may be.</param>
/// <param name="bytesMax">Bytes that they may take up.</param>
internal sealed class SessionQuota(int countMax, long bytesMax)
{
    /// <summary>Sessions that are remembered.</summary>
    public int Count { get; set; }

    /// <summary>Bytes that they take up, outcomes and values included.</summary>
    public long Bytes { get; set; }

    /// <summary>No further session is taken.</summary>
    public bool IsFull => Count >= countMax || !HasBytes;

    /// <summary>There is room for more bytes of any kind.</summary>
    public bool HasBytes => Bytes < bytesMax;

    /// <summary>Room runs out: those that are idle are to go earlier than usual.</summary>
    public bool IsCrowded => Count >= countMax / 4 * 3 || Bytes >= OutcomeBytesMax;

    /// <summary>
    /// Bytes left for large windows and for values. A quarter of all is reserved for new sessions and small windows.
    /// </summary>
    public long OutcomeBytesLeft => OutcomeBytesMax - Bytes;

    private long OutcomeBytesMax => bytesMax / 4 * 3;
}
