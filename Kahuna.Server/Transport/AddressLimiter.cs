using System.Buffers.Binary;
using System.Net;

namespace Kahuna.Server.Transport;

/// <summary>
/// Limits the open connections of each remote address, so that one machine cannot take the descriptors and the memory
/// of all clients. An IPv6 address counts with its /64, of which a single machine may have every address. It keeps one
/// number for each address with an open connection, so there are never more of them than descriptors. Owned by the
/// node; any thread.
/// </summary>
/// <param name="max">Connections of an address; 0: no limit, and nothing is counted.</param>
internal sealed class AddressLimiter(int max)
{
    private readonly Lock _lock = new();
    private readonly Dictionary<AddressSource, int> _open = [];
    private int _connections;
    private long _refused;

    /// <summary>Connections of an address; 0: no limit.</summary>
    public int Max => max;

    /// <summary>Whether an address has no limit. Its connections are not counted.</summary>
    public Func<IPAddress, bool> IsExempt { get; init; } = IPAddress.IsLoopback;

    /// <summary>Gets the address of each refused connection; limits the rate of log lines itself.</summary>
    public Action<IPAddress> Refused { get; init; } = static _ => { };

    /// <summary>What is open, of how many addresses, and how many connections were refused so far.</summary>
    public (int Connections, int Addresses, long Refused) Figures
    {
        get
        {
            lock (_lock)
            {
                return (_connections, _open.Count, _refused);
            }
        }
    }

    /// <summary>Counts a connection that was accepted; false if its address has too many.</summary>
    /// <param name="address">Where it comes from; null: the system does not know, because it is closed already.</param>
    /// <param name="slot">What to dispose when the connection is closed; null: it is not counted.</param>
    public bool TryEnter(IPAddress? address, out AddressSlot? slot)
    {
        slot = null;
        if (max == 0 || address is null)
        {
            return true;
        }

        IPAddress plain = address.IsIPv4MappedToIPv6 ? address.MapToIPv4() : address;
        if (IsExempt(plain))
        {
            return true;
        }

        AddressSource source = AddressSource.Of(plain);
        lock (_lock)
        {
            int open = _open.GetValueOrDefault(source);
            if (open < max)
            {
                _open[source] = open + 1;
                _connections++;
                slot = new AddressSlot(this, source);
                return true;
            }

            _refused++;
        }

        Refused(plain);
        return false;
    }

    /// <summary>A counted connection is closed. Called by its <see cref="AddressSlot"/>, once.</summary>
    public void Leave(AddressSource source)
    {
        lock (_lock)
        {
            _connections--;
            if (--_open[source] == 0)
            {
                _open.Remove(source);
            }
        }
    }

    /// <summary>An IPv4 address, or the first 64 bits of an IPv6 address.</summary>
    internal readonly record struct AddressSource(ulong Bits, bool IsV6)
    {
        public static AddressSource Of(IPAddress address)
        {
            Span<byte> bytes = stackalloc byte[16];
            address.TryWriteBytes(bytes, out int count);
            return count == bytes.Length
                ? new AddressSource(BinaryPrimitives.ReadUInt64BigEndian(bytes), IsV6: true)
                : new AddressSource(BinaryPrimitives.ReadUInt32BigEndian(bytes), IsV6: false);
        }
    }
}
