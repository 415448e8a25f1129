using System.Buffers.Binary;

namespace Kahuna.Server.State.Rows;

/// <summary>
/// The 128-bit key of a table's hash. Each process draws its own, so that nobody outside can choose keys that collide.
/// Nothing that leaves the process depends on it. A value.
/// </summary>
/// <param name="First">Lower half.</param>
/// <param name="Second">Upper half.</param>
internal readonly record struct HashSecret(ulong First, ulong Second)
{
    /// <summary>Bytes that a secret is made of.</summary>
    public const int Bytes = 16;

    /// <summary>The secret that 16 random bytes make up, little endian.</summary>
    public static HashSecret From(ReadOnlySpan<byte> random) =>
        new(
            BinaryPrimitives.ReadUInt64LittleEndian(random),
            BinaryPrimitives.ReadUInt64LittleEndian(random[sizeof(ulong)..]));

    /// <summary>Does not show the secret: options are logged and printed.</summary>
    public override string ToString() => "***";
}
