namespace Kahuna.Server.Api.Calls;

/// <summary>
/// A budget of bytes for requests: one for incomplete and one for waiting requests, of each connection and of the node.
/// Without it, a connection could leave a thousand of the largest requests unfinished. Any thread.
/// </summary>
/// <param name="bytesMax">Bytes above which larger requests are refused or not read.</param>
internal sealed class RequestBudget(long bytesMax)
{
    /// <summary>
    /// Per connection: the largest frame of a stream (33 MB), and as much again for concurrent calls.
    /// </summary>
    public const long ConnectionBytesMax = 64L << 20;

    /// <summary>
    /// Per node: four connections that use their whole budget, or a thousand clients in the middle of a frame of 256
    /// KiB.
    /// </summary>
    public const long NodeBytesMax = 256L << 20;

    /// <summary>
    /// A request of which no more has arrived is never refused, so that small calls are served when others have used up
    /// the budget.
    /// </summary>
    public const int SmallBytes = 64 * 1024;

    private long _used;
    private int _waiting;

    /// <summary>Bytes in use.</summary>
    public long Used => Volatile.Read(ref _used);

    public long BytesMax => bytesMax;

    /// <summary>Bytes left.</summary>
    public long Free => Math.Max(0, bytesMax - Used);

    /// <summary>Streams that are not read until their next request fits.</summary>
    public int Waiting => Volatile.Read(ref _waiting);

    /// <summary>Adds to the number of waiting streams; a negative number subtracts.</summary>
    public void AddWaiting(int streams) => Interlocked.Add(ref _waiting, streams);

    /// <summary>
    /// Adds bytes; a negative number subtracts. False if the budget is exceeded; the bytes count all the same until
    /// they are subtracted.
    /// </summary>
    public bool Add(long bytes) => Interlocked.Add(ref _used, bytes) <= bytesMax;
}
