using System.Text;
using Kahuna.Cli.Errors;
using Kahuna.Cli.Terminal;
using Kahuna.Client.Connection.Access;

namespace Kahuna.Cli.Connecting;

/// <summary>
/// Secrets come from files and from the person at the terminal. Other users of the machine see arguments. Static.
/// </summary>
internal static class Secret
{
    /// <summary>Asks for a secret.</summary>
    /// <param name="environment">Who is asked.</param>
    /// <param name="question">What for.</param>
    /// <param name="option">The option that names a file instead.</param>
    /// <exception cref="CliException">There is no terminal, or the person gave up.</exception>
    public static string Ask(CliEnvironment environment, string question, string option) => environment.Prompt switch
    {
        { IsThere: false } => throw new CliException(
            $"{question}: there is no terminal to ask at; name a file that holds it with {option}."),
        { } prompt when prompt.ReadSecret(ShownText.Of(question)) is { Length: > 0 } secret => secret,
        _ => throw new CliException($"{question}: nothing was entered."),
    };

    /// <summary>The only line of a file.</summary>
    /// <exception cref="CliException">It cannot be used.</exception>
    public static string Read(string option, string path)
    {
        try
        {
            return SecretFile.Read(path);
        }
        catch (Exception failure) when (failure is IOException or DecoderFallbackException)
        {
            throw new CliException($"{option}: {failure.Message}.");
        }
    }
}
