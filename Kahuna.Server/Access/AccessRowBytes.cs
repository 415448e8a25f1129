using System.Buffers.Binary;
using System.Text;
using System.Text.Unicode;

namespace Kahuna.Server.Access;

/// <summary>Writes the fields of a row's value one after the other. Owned by one encoder.</summary>
internal sealed class AccessRowWriter
{
    private readonly List<byte> _bytes = [];

    public void U8(byte value) => _bytes.Add(value);

    public void U16(int value) => Number(checked((ushort)value), sizeof(ushort));

    public void U32(uint value) => Number(value, sizeof(uint));

    public void U64(ulong value) => Number(value, sizeof(ulong));

    public void Bytes(ReadOnlySpan<byte> bytes) => _bytes.AddRange(bytes);

    /// <summary>A text: its length and UTF-8.</summary>
    public void Text(string text)
    {
        byte[] bytes = Encoding.UTF8.GetBytes(text);
        U16(bytes.Length);
        Bytes(bytes);
    }

    /// <summary>At most 255 texts.</summary>
    public void Texts(IReadOnlyList<string> texts)
    {
        U8(checked((byte)texts.Count));
        foreach (string text in texts)
        {
            Text(text);
        }
    }

    public byte[] ToArray() => [.. _bytes];

    private void Number(ulong value, int bytes)
    {
        Span<byte> all = stackalloc byte[sizeof(ulong)];
        BinaryPrimitives.WriteUInt64LittleEndian(all, value);
        _bytes.AddRange(all[..bytes]);
    }
}

/// <summary>
/// Reads the fields of a row's value one after the other. What is not there reads as nothing and makes the reader bad;
/// it never throws. Owned by one decoder.
/// </summary>
internal ref struct AccessRowReader(ReadOnlySpan<byte> value)
{
    private ReadOnlySpan<byte> _rest = value;

    /// <summary>Something was missing, or was no text.</summary>
    public bool IsBad { get; private set; }

    /// <summary>Everything was read, and nothing was missing.</summary>
    public readonly bool IsDone => !IsBad && _rest.IsEmpty;

    public byte U8() => (byte)Number(sizeof(byte));

    public ushort U16() => (ushort)Number(sizeof(ushort));

    public uint U32() => (uint)Number(sizeof(uint));

    public ulong U64() => Number(sizeof(ulong));

    public ReadOnlySpan<byte> Bytes(int count)
    {
        if (IsBad || _rest.Length < count)
        {
            IsBad = true;
            return default;
        }

        ReadOnlySpan<byte> taken = _rest[..count];
        _rest = _rest[count..];
        return taken;
    }

    /// <summary>A text; empty when it is none.</summary>
    public string Text()
    {
        ReadOnlySpan<byte> bytes = Bytes(U16());
        if (!TryText(bytes, out string text))
        {
            IsBad = true;
        }

        return text;
    }

    /// <summary>At most 255 texts.</summary>
    public IReadOnlyList<string> Texts()
    {
        int count = U8();
        List<string> texts = [];
        for (int i = 0; i < count && !IsBad; i++)
        {
            texts.Add(Text());
        }

        return texts;
    }

    /// <summary>Decodes UTF-8; false when it is none.</summary>
    public static bool TryText(ReadOnlySpan<byte> bytes, out string text)
    {
        bool isText = Utf8.IsValid(bytes);
        text = isText ? Encoding.UTF8.GetString(bytes) : "";
        return isText;
    }

    private ulong Number(int bytes)
    {
        ulong value = 0;
        ReadOnlySpan<byte> taken = Bytes(bytes);
        for (int i = taken.Length - 1; i >= 0; i--)
        {
            value = (value << 8) | taken[i];
        }

        return value;
    }
}
