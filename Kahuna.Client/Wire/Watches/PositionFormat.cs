using System.Buffers.Binary;
using System.Text;
using Kahuna.Wire.Routing;

namespace Kahuna.Wire.Watches;

/// <summary>
/// The bytes of a position: points of the groups of one level, for the caller to keep. Stateless, any thread.
/// <code>
/// offset  0  u8   version, 1
///         1  u8   durability
///         2  u16  number of points
///         4  u64  tag of the cluster
///        12  points of 24 bytes, ascending by their group
///         …  u64  XXH64 of all bytes before
/// </code>
/// All numbers are little-endian.
/// </summary>
internal static class PositionFormat
{
    private const byte Version = 1;
    private const int HeaderBytes = 12;

    /// <summary>Names a cluster in a position: XXH64 of its id.</summary>
    public static ulong ClusterTag(string clusterId) => XxHash64.Hash(Encoding.UTF8.GetBytes(clusterId));

    /// <summary>Encodes points of one level, which ascend by their group.</summary>
    public static byte[] Write(ulong cluster, Durability durability, ReadOnlySpan<ChangePoint> points)
    {
        byte[] bytes = new byte[HeaderBytes + (points.Length * ChangePoint.Bytes) + sizeof(ulong)];
        bytes[0] = Version;
        bytes[1] = (byte)durability;
        BinaryPrimitives.WriteUInt16LittleEndian(bytes.AsSpan(2), checked((ushort)points.Length));
        BinaryPrimitives.WriteUInt64LittleEndian(bytes.AsSpan(4), cluster);
        for (int i = 0; i < points.Length; i++)
        {
            points[i].Write(bytes.AsSpan(HeaderBytes + (i * ChangePoint.Bytes)));
        }

        BinaryPrimitives.WriteUInt64LittleEndian(
            bytes.AsSpan(bytes.Length - sizeof(ulong)), XxHash64.Hash(bytes.AsSpan(0, bytes.Length - sizeof(ulong))));
        return bytes;
    }

    /// <summary>
    /// Decodes a position. False when it was changed or never was one: length, version, hash, order or level of its
    /// points.
    /// </summary>
    public static bool TryRead(
        ReadOnlySpan<byte> bytes, out ulong cluster, out Durability durability, out ChangePoint[] points)
    {
        (cluster, durability, points) = (0, default, []);
        if (bytes.Length < HeaderBytes + sizeof(ulong)
            || bytes[0] != Version
            || BinaryPrimitives.ReadUInt64LittleEndian(bytes[^sizeof(ulong)..])
                != XxHash64.Hash(bytes[..^sizeof(ulong)]))
        {
            return false;
        }

        durability = (Durability)bytes[1];
        int count = BinaryPrimitives.ReadUInt16LittleEndian(bytes[2..]);
        cluster = BinaryPrimitives.ReadUInt64LittleEndian(bytes[4..]);
        if (bytes.Length != HeaderBytes + (count * ChangePoint.Bytes) + sizeof(ulong)
            || durability is not (Durability.Persistent or Durability.Ephemeral))
        {
            return false;
        }

        points = new ChangePoint[count];
        for (int i = 0; i < count; i++)
        {
            points[i] = ChangePoint.Read(bytes[(HeaderBytes + (i * ChangePoint.Bytes))..]);
            if (points[i].IsEphemeral != (durability == Durability.Ephemeral)
                || (i > 0 && points[i].Group <= points[i - 1].Group))
            {
                return false;
            }
        }

        return true;
    }
}
