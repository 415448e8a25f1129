using System.Security.Cryptography;
using System.Text;

namespace Kahuna.Tests.Access.Hostile;

/// <summary>
/// A text that is part of all names and values of the legitimate users, and that nobody else may get to see: neither as
/// it is nor in base64, at any alignment. Immutable; any thread.
/// </summary>
internal sealed class SecretMarker
{
    private readonly byte[][] _forms;

    public SecretMarker()
    {
        Text = "s3cret" + RandomNumberGenerator.GetHexString(24);
        byte[] plain = Encoding.ASCII.GetBytes(Text);
        _forms = [plain, .. Enumerable.Range(0, 3).Select(before => Base64At(plain, before))];
        LengthMax = _forms.Max(static form => form.Length);
    }

    /// <summary>The text.</summary>
    public string Text { get; }

    /// <summary>Bytes of its longest form.</summary>
    public int LengthMax { get; }

    /// <summary>It is among the bytes.</summary>
    public bool IsIn(ReadOnlySpan<byte> bytes)
    {
        foreach (byte[] form in _forms)
        {
            if (bytes.IndexOf(form) >= 0)
            {
                return true;
            }
        }

        return false;
    }

    /// <summary>The characters that only it decides about, behind so many other bytes.</summary>
    private static byte[] Base64At(byte[] plain, int before)
    {
        string text = Convert.ToBase64String([.. new byte[before], .. plain]);
        int first = ((before * 8) + 5) / 6;
        int end = (before + plain.Length) * 8 / 6;
        return Encoding.ASCII.GetBytes(text[first..end]);
    }
}
