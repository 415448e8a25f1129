using System.Text.Json;
using Kahuna.Cli.Errors;
using Kahuna.Cli.Terminal;

namespace Kahuna.Cli.Connecting;

/// <summary>
/// The file of contexts: <c>KAHUNA_CONTEXTS</c>, or <c>kahuna/contexts.json</c> in the user's directory of settings.
/// Only its owner may read it, and it is replaced as a whole. Used by one command.
/// </summary>
/// <param name="environment">Says where it is.</param>
internal sealed class ContextFile(CliEnvironment environment)
{
    /// <summary>Far more than anybody has; above it the file is not this one.</summary>
    private const int BytesMax = 1 << 20;

    /// <summary>Where the file is.</summary>
    public string Path { get; } = environment.Variable("KAHUNA_CONTEXTS")
        ?? System.IO.Path.Combine(Directory(environment), "kahuna", "contexts.json");

    /// <summary>The directory of the user's settings.</summary>
    public static string Directory(CliEnvironment environment) => environment.Variable("XDG_CONFIG_HOME")
        ?? Environment.GetFolderPath(
            Environment.SpecialFolder.ApplicationData, Environment.SpecialFolderOption.DoNotVerify);

    /// <summary>The contexts; none when there is no file.</summary>
    /// <exception cref="CliException">The file cannot be used.</exception>
    public ContextBook Read()
    {
        try
        {
            FileInfo file = new(Path);
            return !file.Exists ? new ContextBook()
                : file.Length > BytesMax ? throw new CliException(
                    $"The file of contexts '{Path}' is larger than 1 MiB. Remove it, or name another: KAHUNA_CONTEXTS.")
                : JsonSerializer.Deserialize(File.ReadAllBytes(Path), ContextJson.Default.ContextBook)
                    ?? new ContextBook();
        }
        catch (JsonException failure)
        {
            long line = failure.LineNumber.GetValueOrDefault() + 1;
            throw new CliException($"The file of contexts '{Path}' is damaged at line {line}. Correct or remove it.");
        }
        catch (Exception failure) when (failure is IOException or UnauthorizedAccessException)
        {
            throw new CliException($"The file of contexts '{Path}' cannot be read: {failure.Message}");
        }
    }

    /// <summary>Replaces the contexts. After a crash the file is the old one or the new one.</summary>
    /// <exception cref="CliException">The file cannot be written.</exception>
    public void Write(ContextBook book)
    {
        try
        {
            PrivateFile.Replace(Path, JsonSerializer.SerializeToUtf8Bytes(book, ContextJson.Default.ContextBook));
        }
        catch (Exception failure) when (failure is IOException or UnauthorizedAccessException)
        {
            throw new CliException($"The file of contexts '{Path}' cannot be written: {failure.Message}");
        }
    }
}
