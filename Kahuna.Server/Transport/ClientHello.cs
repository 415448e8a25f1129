using System.Buffers.Binary;
using Kahuna.Wire.Sockets;

namespace Kahuna.Server.Transport;

/// <summary>Kind of client, judged by the first bytes of its connection.</summary>
internal enum ClientHelloKind
{
    /// <summary>Too few bytes to decide.</summary>
    Incomplete,

    /// <summary>A node: TLS with <see cref="PeerProtocol.ApplicationProtocol"/>.</summary>
    Peer,

    /// <summary>A client's direct link: TLS with <see cref="DirectLinkProtocol"/>.</summary>
    Link,

    /// <summary>Any other client; the HTTP server handles it.</summary>
    Other,
}

/// <summary>
/// Finds the application protocols in a TLS ClientHello (RFC 8446, 4.1.2; RFC 7301) without taking part in the
/// handshake. Accepts any bytes of any length. Pure.
/// </summary>
internal static class ClientHello
{
    private const byte HandshakeRecord = 22;
    private const byte ClientHelloMessage = 1;
    private const ushort AlpnExtension = 16;

    /// <summary>u8 type, u16 version, u16 length.</summary>
    private const int RecordHeaderBytes = 5;

    /// <summary>The record's header and the message's: u8 type, u24 length.</summary>
    private const int HeaderBytes = RecordHeaderBytes + 4;

    private const int VersionAndRandomBytes = 34;

    /// <summary>Reads the bytes received so far.</summary>
    public static ClientHelloKind Classify(ReadOnlySpan<byte> received)
    {
        if (received is [not HandshakeRecord, ..] or [_, _, _, _, _, not ClientHelloMessage, ..])
        {
            return ClientHelloKind.Other;
        }

        if (received.Length < HeaderBytes)
        {
            return ClientHelloKind.Incomplete;
        }

        // A ClientHello that spans several records is longer than any node sends; only its first record is read.
        int recordEnd = RecordHeaderBytes + BinaryPrimitives.ReadUInt16BigEndian(received[3..]);
        if (recordEnd < HeaderBytes)
        {
            // The message's header exceeds its record.
            return ClientHelloKind.Other;
        }

        bool complete = received.Length >= recordEnd;
        ReadOnlySpan<byte> rest = received[HeaderBytes..Math.Min(received.Length, recordEnd)];
        ClientHelloKind missing = complete ? ClientHelloKind.Other : ClientHelloKind.Incomplete;
        if (!Skip(ref rest, VersionAndRandomBytes)
            || !SkipVector(ref rest, 1)
            || !SkipVector(ref rest, 2)
            || !SkipVector(ref rest, 1)
            || !Skip(ref rest, 2))
        {
            return missing;
        }

        while (rest.Length >= 4)
        {
            ushort type = BinaryPrimitives.ReadUInt16BigEndian(rest);
            int length = BinaryPrimitives.ReadUInt16BigEndian(rest[2..]);
            if (rest.Length < 4 + length)
            {
                return missing;
            }

            if (type == AlpnExtension)
            {
                ReadOnlySpan<byte> names = rest.Slice(4, length);
                return Names(names, PeerProtocol.ApplicationProtocol.Protocol.Span) ? ClientHelloKind.Peer
                    : Names(names, DirectLinkProtocol.ApplicationProtocol.Protocol.Span) ? ClientHelloKind.Link
                    : ClientHelloKind.Other;
            }

            rest = rest[(4 + length)..];
        }

        return missing;
    }

    private static bool Names(ReadOnlySpan<byte> extension, ReadOnlySpan<byte> protocol)
    {
        if (!Skip(ref extension, 2))
        {
            return false;
        }

        while (extension.Length > 0 && extension.Length > extension[0])
        {
            if (extension.Slice(1, extension[0]).SequenceEqual(protocol))
            {
                return true;
            }

            extension = extension[(1 + extension[0])..];
        }

        return false;
    }

    private static bool Skip(ref ReadOnlySpan<byte> rest, int bytes)
    {
        if (rest.Length < bytes)
        {
            return false;
        }

        rest = rest[bytes..];
        return true;
    }

    private static bool SkipVector(ref ReadOnlySpan<byte> rest, int lengthBytes)
    {
        if (rest.Length < lengthBytes)
        {
            return false;
        }

        int length = lengthBytes == 1 ? rest[0] : BinaryPrimitives.ReadUInt16BigEndian(rest);
        return Skip(ref rest, lengthBytes + length);
    }
}
