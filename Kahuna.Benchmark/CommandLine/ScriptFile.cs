using System.Globalization;
using System.Text;
using Kahuna.Wire.Scripts;

namespace Kahuna.Benchmark.CommandLine;

/// <summary>Reads the file of <c>--script</c>. Static, any thread.</summary>
internal static class ScriptFile
{
    private static readonly UTF8Encoding s_strict = new(false, throwOnInvalidBytes: true);

    /// <summary>Reads a file of UTF-8, with or without a byte order mark.</summary>
    /// <param name="path">Path of the file.</param>
    /// <param name="text">The text; empty when there is an error.</param>
    /// <param name="error">What is wrong, as the rest of a sentence that begins with the path; null if nothing.</param>
    public static bool TryRead(string path, out string text, out string? error)
    {
        text = "";
        error = null;
        byte[] bytes = new byte[ScriptBody.TextBytesMax + Encoding.UTF8.Preamble.Length + 1];
        int length;
        try
        {
            using FileStream file = File.OpenRead(path);
            length = file.ReadAtLeast(bytes, bytes.Length, throwOnEndOfStream: false);
        }
        catch (Exception failure) when (failure is FileNotFoundException or DirectoryNotFoundException)
        {
            error = "does not exist";
            return false;
        }
        catch (Exception failure) when (
            failure is IOException or UnauthorizedAccessException or ArgumentException or NotSupportedException)
        {
            error = $"cannot be read: {failure.Message.TrimEnd('.')}";
            return false;
        }

        ReadOnlySpan<byte> content = bytes.AsSpan(0, length);
        content = content.StartsWith(Encoding.UTF8.Preamble) ? content[Encoding.UTF8.Preamble.Length..] : content;
        if (content.Length > ScriptBody.TextBytesMax)
        {
            error = string.Create(
                CultureInfo.InvariantCulture, $"is larger than a script may be, {ScriptBody.TextBytesMax:N0} bytes");
            return false;
        }

        try
        {
            text = s_strict.GetString(content);
            return true;
        }
        catch (DecoderFallbackException)
        {
            error = "is not UTF-8 text";
            return false;
        }
    }
}
