namespace Kahuna.Server.Transport;

/// <summary>
/// The place of a connection among those of its address. Dispose it, once or more often, when the connection is closed.
/// Any thread.
/// </summary>
/// <param name="owner">Counts the connections.</param>
/// <param name="source">The address.</param>
internal sealed class AddressSlot(AddressLimiter owner, AddressLimiter.AddressSource source) : IDisposable
{
    private int _left;

    public void Dispose()
    {
        if (Interlocked.Exchange(ref _left, 1) == 0)
        {
            owner.Leave(source);
        }
    }
}
