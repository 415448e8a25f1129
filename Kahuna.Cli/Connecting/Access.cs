using Kahuna.Cli.Errors;
using Kahuna.Cli.Terminal;
using Kahuna.Client;

namespace Kahuna.Cli.Connecting;

/// <summary>How a command signs in: one of three ways, or none. Holds no secret. Immutable.</summary>
internal sealed record Access
{
    public static Access None { get; } = new();

    /// <summary>The name of the user; its password is in <see cref="PasswordFile"/>, or is asked for.</summary>
    public string? User { get; init; }

    public string? PasswordFile { get; init; }

    public string? TokenFile { get; init; }

    public string? ClientCertificate { get; init; }

    /// <summary>The key of <see cref="ClientCertificate"/>; null: it is in the same file.</summary>
    public string? ClientCertificateKey { get; init; }

    /// <summary>Nothing is given.</summary>
    public bool IsNone => this == None;

    /// <summary>A person is asked for the password.</summary>
    public bool IsAsked => User is not null && PasswordFile is null;

    /// <summary>The credentials; null: none.</summary>
    /// <param name="environment">Asks for the password when no file has it.</param>
    /// <exception cref="CliException">They contradict each other, or a file cannot be used.</exception>
    public KahunaCredentials? ToCredentials(CliEnvironment environment)
    {
        string[] ways =
        [
            .. new[]
            {
                User is null && PasswordFile is null ? null : "--user",
                TokenFile is null ? null : "--token-file",
                ClientCertificate is null && ClientCertificateKey is null ? null : "--client-certificate",
            }.OfType<string>(),
        ];
        if (ways.Length == 0)
        {
            return null;
        }

        if (ways.Length > 1)
        {
            throw new CliException($"{ways[0]} and {ways[1]} contradict each other; give one way to sign in.");
        }

        try
        {
            KahunaCredentials credentials = TokenFile is not null ? KahunaCredentials.TokenFile(TokenFile)
                : ways[0] == "--user" ? OfPassword(environment)
                : KahunaCredentials.ClientCertificate(
                    ClientCertificate ?? throw new CliException("--client-certificate-key needs --client-certificate."),
                    ClientCertificateKey);
            return credentials.Check() is { } unusable
                ? throw new CliException($"{ways[0]}: {unusable}.")
                : credentials;
        }
        catch (ArgumentException refused)
        {
            throw new CliException($"{ways[0]}: {refused.Message}");
        }
    }

    private KahunaCredentials OfPassword(CliEnvironment environment)
    {
        if (User is null)
        {
            throw new CliException("--password-file needs --user.");
        }

        if (PasswordFile is not null)
        {
            return KahunaCredentials.PasswordFile(User, PasswordFile);
        }

        return KahunaCredentials.Password(User, Secret.Ask(environment, $"Password of {User}", "--password-file"));
    }
}
