using System.Buffers.Text;
using System.Text;

namespace Kahuna.Benchmark.Targets.Redis;

/// <summary>
/// Writes RESP2 commands into a buffer that grows and is reused. Owned by one link and guarded by its lock.
/// </summary>
internal sealed class RespWriter
{
    /// <summary>Room for the fixed parts of a command and its length numbers.</summary>
    private const int FixedBytes = 64;

    private byte[] _buffer = new byte[16 * 1024];

    public int Length { get; private set; }

    public ReadOnlyMemory<byte> Written => _buffer.AsMemory(0, Length);

    public void Clear() => Length = 0;

    public void WriteSet(string key, ReadOnlySpan<byte> value)
    {
        int keyBytes = Encoding.UTF8.GetByteCount(key);
        Reserve(FixedBytes + keyBytes + value.Length);
        Append("*3\r\n$3\r\nSET\r\n"u8);
        AppendText(key, keyBytes);
        AppendSize(value.Length);
        Append(value);
        Append("\r\n"u8);
    }

    public void WriteGet(string key)
    {
        int keyBytes = Encoding.UTF8.GetByteCount(key);
        Reserve(FixedBytes + keyBytes);
        Append("*2\r\n$3\r\nGET\r\n"u8);
        AppendText(key, keyBytes);
    }

    /// <summary>A script with one key and two arguments.</summary>
    public void WriteEval(string script, string key, ReadOnlySpan<byte> value, long number)
    {
        int scriptBytes = Encoding.UTF8.GetByteCount(script);
        int keyBytes = Encoding.UTF8.GetByteCount(key);
        Reserve((2 * FixedBytes) + scriptBytes + keyBytes + value.Length);
        Append("*6\r\n$4\r\nEVAL\r\n"u8);
        AppendText(script, scriptBytes);
        Append("$1\r\n1\r\n"u8);
        AppendText(key, keyBytes);
        AppendSize(value.Length);
        Append(value);
        Append("\r\n"u8);
        AppendNumber(number);
    }

    public void WriteInfo()
    {
        Reserve(FixedBytes);
        Append("*2\r\n$4\r\nINFO\r\n$6\r\nserver\r\n"u8);
    }

    private void AppendText(string text, int bytes)
    {
        AppendSize(bytes);
        Length += Encoding.UTF8.GetBytes(text, _buffer.AsSpan(Length));
        Append("\r\n"u8);
    }

    private void AppendNumber(long number)
    {
        Span<byte> digits = stackalloc byte[20];
        Utf8Formatter.TryFormat(number, digits, out int written);
        AppendSize(written);
        Append(digits[..written]);
        Append("\r\n"u8);
    }

    private void AppendSize(int size)
    {
        _buffer[Length++] = (byte)'$';
        Utf8Formatter.TryFormat(size, _buffer.AsSpan(Length), out int written);
        Length += written;
        Append("\r\n"u8);
    }

    private void Append(ReadOnlySpan<byte> bytes)
    {
        bytes.CopyTo(_buffer.AsSpan(Length));
        Length += bytes.Length;
    }

    private void Reserve(int bytes)
    {
        if (_buffer.Length - Length < bytes)
        {
            Array.Resize(ref _buffer, Math.Max(_buffer.Length * 2, Length + bytes));
        }
    }
}
