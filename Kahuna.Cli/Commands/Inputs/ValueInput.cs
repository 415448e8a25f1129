using System.CommandLine;
using System.Globalization;
using System.Text;
using Kahuna.Cli.Errors;
using Kahuna.Wire;

namespace Kahuna.Cli.Commands.Inputs;

/// <summary>
/// A value that a command writes: an argument, a file, or standard input; text, or base64 of any bytes. No more is read
/// than a value may have.
/// </summary>
internal sealed class ValueInput
{
    public Argument<string?> Argument { get; } = new("value")
    {
        Description = "The value; '-' reads it from standard input",
        Arity = ArgumentArity.ZeroOrOne,
    };

    public Option<string> File { get; } = Given.Text(
        "--value-file", "file", "File with the value; '-': standard input");

    public Option<bool> Base64 { get; } = Given.Flag("--base64", "The value is given in base64");

    public Option<bool> Null { get; } = Given.Flag("--null", "Write the null value");

    /// <summary>Adds them to a command.</summary>
    public void AddTo(CliCommand command)
    {
        command.Add(Argument);
        command.Add(File);
        command.Add(Base64);
        command.Add(Null);
    }

    /// <summary>Reads the value.</summary>
    /// <exception cref="CliException">It is missing, given twice, too large or no base64.</exception>
    public async Task<KahunaValue> ReadAsync(CommandCall call)
    {
        string? text = call.Parsed.GetValue(Argument);
        string? file = call.Get(File);
        bool isNull = call.Get(Null);
        int given = (text is null ? 0 : 1) + (file is null ? 0 : 1) + (isNull ? 1 : 0);
        if (given != 1)
        {
            throw new CliException(given == 0
                ? "No value is given. Give it as an argument, with --value-file, or '-' for standard input."
                : "The value is given more than once: as an argument, with --value-file or --null.");
        }

        if (isNull)
        {
            return KahunaValue.Null;
        }

        byte[] bytes = file is not null && file != "-" ? await ReadFileAsync(file, call.Stop).ConfigureAwait(false)
            : file is not null || text == "-"
                ? await ReadAsync(call.Environment.Streams.Input, "standard input", call.Stop).ConfigureAwait(false)
            : Encoding.UTF8.GetBytes(text!);
        return call.Get(Base64) ? Decoded(bytes) : bytes;
    }

    /// <summary>Reads all of a stream, up to what a value may have at most.</summary>
    public static async Task<byte[]> ReadAsync(Stream stream, string name, CancellationToken ct)
    {
        // In base64 a value is a third larger.
        const int Max = (Limits.ValueBytesCeiling / 3 * 4) + 4096;
        using MemoryStream whole = new();
        byte[] part = new byte[64 * 1024];
        int length;
        while ((length = await stream.ReadAsync(part, ct).ConfigureAwait(false)) > 0)
        {
            whole.Write(part, 0, length);
            if (whole.Length > Max)
            {
                throw new CliException(string.Create(
                    CultureInfo.InvariantCulture,
                    $"{name} has more bytes than a value may have at most, {Limits.ValueBytesCeiling:N0}."));
            }
        }

        return whole.ToArray();
    }

    /// <summary>Reads all of a file.</summary>
    /// <exception cref="CliException">It cannot be read, or is too large.</exception>
    public static async Task<byte[]> ReadFileAsync(string path, CancellationToken ct)
    {
        try
        {
            FileStream file = new(path, FileMode.Open, FileAccess.Read, FileShare.ReadWrite | FileShare.Delete);
            await using (file.ConfigureAwait(false))
            {
                return await ReadAsync(file, $"'{path}'", ct).ConfigureAwait(false);
            }
        }
        catch (Exception failure) when (failure is FileNotFoundException or DirectoryNotFoundException)
        {
            throw new CliException($"The file '{path}' does not exist.");
        }
        catch (Exception failure) when (failure is IOException or UnauthorizedAccessException or ArgumentException)
        {
            throw new CliException($"The file '{path}' cannot be read: {failure.Message}");
        }
    }

    private static byte[] Decoded(byte[] text)
    {
        try
        {
            return Convert.FromBase64String(Encoding.ASCII.GetString(text));
        }
        catch (FormatException)
        {
            throw new CliException("--base64: the value is no base64.");
        }
    }
}
