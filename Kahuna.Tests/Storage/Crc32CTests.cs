using Kahuna.Server.Storage;

namespace Kahuna.Tests.Storage;

/// <summary>
/// The published values of CRC-32C (RFC 3720, appendix B.4), and agreement with bit by bit at each length.
/// </summary>
public sealed class Crc32CTests
{
    [Fact]
    public void PublishedValues()
    {
        Assert.Equal(0xE3069283u, Crc32C.Of("123456789"u8));
        Assert.Equal(0x8A9136AAu, Crc32C.Of(new byte[32]));
        Assert.Equal(0x62A8AB43u, Crc32C.Of([.. Enumerable.Repeat((byte)0xFF, 32)]));
        Assert.Equal(0x46DD794Eu, Crc32C.Of([.. Enumerable.Range(0, 32).Select(i => (byte)i)]));
        Assert.Equal(0u, Crc32C.Of([]));
    }

    [Fact]
    public void EachLength()
    {
        byte[] bytes = [.. Enumerable.Range(0, 70).Select(i => (byte)(i * 37))];
        for (int length = 0; length <= bytes.Length; length++)
        {
            Assert.Equal(BitByBit(bytes.AsSpan(0, length)), Crc32C.Of(bytes.AsSpan(0, length)));
        }
    }

    private static uint BitByBit(ReadOnlySpan<byte> bytes)
    {
        uint crc = uint.MaxValue;
        foreach (byte one in bytes)
        {
            crc ^= one;
            for (int bit = 0; bit < 8; bit++)
            {
                crc = (crc & 1) != 0 ? (crc >> 1) ^ 0x82F63B78u : crc >> 1;
            }
        }

        return ~crc;
    }
}
