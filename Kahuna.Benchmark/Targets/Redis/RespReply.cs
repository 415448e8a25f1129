using System.Buffers.Text;
using System.Text;

namespace Kahuna.Benchmark.Targets.Redis;

/// <summary>What a reply is, as far as a load generator cares.</summary>
internal enum RespKind
{
    Value,
    Nil,
    Error,
}

/// <summary>
/// One reply of RESP2, as a view into the bytes that were read. Scripts may return arrays, which are read as a whole.
/// </summary>
internal readonly ref struct RespReply
{
    private RespReply(RespKind kind, ReadOnlySpan<byte> bytes)
    {
        Kind = kind;
        Bytes = bytes;
    }

    public RespKind Kind { get; }

    public ReadOnlySpan<byte> Bytes { get; }

    public string ToText() => Encoding.UTF8.GetString(Bytes);

    /// <summary>Reads the reply at the start of <paramref name="source"/>; false when it is not complete yet.</summary>
    public static bool TryRead(ReadOnlySpan<byte> source, out RespReply reply, out int length)
    {
        reply = default;
        length = 0;
        int lineEnd = source.IndexOf("\r\n"u8);
        if (lineEnd < 1)
        {
            return false;
        }

        ReadOnlySpan<byte> line = source[1..lineEnd];
        length = lineEnd + 2;
        switch (source[0])
        {
            case (byte)'+' or (byte)':':
                reply = new RespReply(RespKind.Value, line);
                return true;
            case (byte)'-':
                reply = new RespReply(RespKind.Error, line);
                return true;
            case (byte)'$' when Utf8Parser.TryParse(line, out int size, out int digits) && digits == line.Length:
                return TryReadBulk(source, size, ref reply, ref length);
            case (byte)'*' when Utf8Parser.TryParse(line, out int items, out int digits) && digits == line.Length:
                return TryReadArray(source, items, ref reply, ref length);
            default:
                throw new IOException("The server's reply is not RESP2.");
        }
    }

    private static bool TryReadArray(ReadOnlySpan<byte> source, int items, ref RespReply reply, ref int length)
    {
        int first = length;
        for (int i = 0; i < items; i++)
        {
            if (!TryRead(source[length..], out _, out int used))
            {
                return false;
            }

            length += used;
        }

        reply = new RespReply(items < 0 ? RespKind.Nil : RespKind.Value, source[first..length]);
        return true;
    }

    private static bool TryReadBulk(ReadOnlySpan<byte> source, int size, ref RespReply reply, ref int length)
    {
        if (size < 0)
        {
            reply = new RespReply(RespKind.Nil, default);
            return true;
        }

        if (source.Length < length + size + 2)
        {
            return false;
        }

        reply = new RespReply(RespKind.Value, source.Slice(length, size));
        length += size + 2;
        return true;
    }
}
