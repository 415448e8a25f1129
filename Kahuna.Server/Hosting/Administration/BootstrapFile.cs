using System.Text;
using System.Text.Json;
using Kahuna.Server.Hosting.Options;

namespace Kahuna.Server.Hosting.Administration;

/// <summary>
/// The file with the first administrator: two lines, user and password, or <c>{"user": …, "password": …}</c>.
/// Immutable.
/// </summary>
/// <param name="User">The name.</param>
/// <param name="Password">The password.</param>
internal sealed record BootstrapFile(string User, string Password)
{
    private const int BytesMax = 4096;

    private const UnixFileMode Others =
        UnixFileMode.GroupRead | UnixFileMode.GroupWrite | UnixFileMode.OtherRead | UnixFileMode.OtherWrite;

    /// <summary>Reads it.</summary>
    /// <exception cref="InvalidDataException">It cannot be read, others may read it, or its content is none; the
    /// message is one line.</exception>
    public static BootstrapFile Read(string path)
    {
        string text = ReadSecret(path, "bootstrap file");
        (string user, string password) = text.TrimStart().StartsWith('{')
            ? ReadJson(path, text)
            : ReadLines(path, text);
        return FirstAdministrator.Objection(user, password) is { } objection
            ? throw new InvalidDataException($"The bootstrap file {path} is unusable. {objection}")
            : new BootstrapFile(user, password);
    }

    /// <summary>The text of a small file that only its owner may read.</summary>
    /// <exception cref="InvalidDataException">It cannot be read, or others may read it.</exception>
    public static string ReadSecret(string path, string what)
    {
        try
        {
            return !OperatingSystem.IsWindows() && (File.GetUnixFileMode(path) & Others) != 0
                    ? throw new InvalidDataException(
                        $"Others can read the {what} {path}, which has a password; forbid it with: chmod 600 {path}")
                : new FileInfo(path).Length > BytesMax
                    ? throw new InvalidDataException($"The {what} {path} is longer than {BytesMax} bytes.")
                : File.ReadAllText(path);
        }
        catch (Exception error) when (error is IOException or UnauthorizedAccessException)
        {
            throw new InvalidDataException($"Cannot read the {what} {path}: {OneLine.Of(error.Message)}", error);
        }
    }

    /// <summary>
    /// A password for a verb: the content of a file, as <see cref="ReadSecret"/>, or of <paramref name="input"/> up to
    /// its end if the path is "-". Without the line's end.
    /// </summary>
    /// <exception cref="InvalidDataException">It cannot be read, others may read it, or it is too long.</exception>
    public static string ReadPassword(string path, Func<Stream> input)
    {
        if (path != "-")
        {
            return ReadSecret(path, "password file").TrimEnd('\r', '\n');
        }

        byte[] bytes = new byte[BytesMax + 1];
        using Stream stream = input();
        int length = stream.ReadAtLeast(bytes, bytes.Length, throwOnEndOfStream: false);
        return length > BytesMax
            ? throw new InvalidDataException($"The password on standard input is longer than {BytesMax} bytes.")
            : Encoding.UTF8.GetString(bytes, 0, length).TrimEnd('\r', '\n');
    }

    /// <summary>Does not show the password.</summary>
    public override string ToString() => User;

    private static (string User, string Password) ReadLines(string path, string text)
    {
        string[] lines = text.ReplaceLineEndings("\n").TrimEnd('\n').Split('\n');
        return lines.Length == 2
            ? (lines[0].Trim(), lines[1])
            : throw new InvalidDataException(
                $"The bootstrap file {path} has {lines.Length} line(s); it must have two: the user and the password.");
    }

    private static (string User, string Password) ReadJson(string path, string text)
    {
        try
        {
            using JsonDocument document = JsonDocument.Parse(text);
            JsonElement root = document.RootElement;
            return root.TryGetProperty("user", out JsonElement user)
                && root.TryGetProperty("password", out JsonElement password)
                && user.ValueKind == JsonValueKind.String
                && password.ValueKind == JsonValueKind.String
                    ? (user.GetString()!, password.GetString()!)
                    : throw new InvalidDataException(
                        $"The bootstrap file {path} needs \"user\" and \"password\", both texts.");
        }
        catch (JsonException)
        {
            // The parser's message would quote the file.
            throw new InvalidDataException($"The bootstrap file {path} is not valid JSON.");
        }
    }
}
