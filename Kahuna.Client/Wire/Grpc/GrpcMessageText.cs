using System.Globalization;
using System.Text;

namespace Kahuna.Client.Wire.Grpc;

/// <summary>Percent-encoding of <c>grpc-message</c>: UTF-8, with every byte outside printable ASCII, and '%', as %XX. Pure; any thread.</summary>
internal static class GrpcMessageText
{
    /// <summary>Longest text that is sent; HTTP/2 implementations limit the size of all headers together.</summary>
    public const int CharactersMax = 2048;

    public static string Encode(string text)
    {
        if (text.Length > CharactersMax)
        {
            text = text[..CharactersMax];
        }

        bool plain = true;
        foreach (char c in text)
        {
            plain &= c is >= ' ' and <= '~' and not '%';
        }

        if (plain)
        {
            return text;
        }

        StringBuilder encoded = new(text.Length + 16);
        foreach (byte b in Encoding.UTF8.GetBytes(text))
        {
            if (b is >= (byte)' ' and <= (byte)'~' and not (byte)'%')
            {
                encoded.Append((char)b);
            }
            else
            {
                encoded.Append(CultureInfo.InvariantCulture, $"%{b:X2}");
            }
        }

        return encoded.ToString();
    }

    /// <summary>Undoes <see cref="Encode"/>. What is no valid escape stays as it is: a message must never make a status unreadable.</summary>
    public static string Decode(string? text)
    {
        if (text is null || !text.Contains('%', StringComparison.Ordinal))
        {
            return text ?? "";
        }

        byte[] bytes = new byte[Encoding.UTF8.GetMaxByteCount(text.Length)];
        int length = 0;
        for (int i = 0; i < text.Length; i++)
        {
            if (text[i] == '%' && i + 2 < text.Length && byte.TryParse(text.AsSpan(i + 1, 2), NumberStyles.AllowHexSpecifier, CultureInfo.InvariantCulture, out byte value))
            {
                bytes[length++] = value;
                i += 2;
            }
            else
            {
                length += Encoding.UTF8.GetBytes(text.AsSpan(i, 1), bytes.AsSpan(length));
            }
        }

        return Encoding.UTF8.GetString(bytes, 0, length);
    }
}
