using Kahuna.Cli.Errors;
using Kahuna.Cli.Terminal;
using Kahuna.Client;

namespace Kahuna.Cli.Connecting;

/// <summary>
/// Which cluster a command talks to, and as whom. Holds the paths of secrets, never a secret. Immutable.
/// </summary>
internal sealed record ConnectionChoice
{
    /// <summary>What is asked when nothing names a cluster.</summary>
    public const string DefaultEndpoints = "https://127.0.0.1:8082";

    /// <summary>Comma-separated.</summary>
    public string Endpoints { get; init; } = DefaultEndpoints;

    public Access Access { get; init; } = Access.None;

    /// <summary>File of the authorities that sign the certificates of the nodes; null: those of the machine.</summary>
    public string? TrustedCa { get; init; }

    /// <summary>Any certificate is accepted.</summary>
    public bool IsInsecure { get; init; }

    /// <summary>The time limit of one operation.</summary>
    public TimeSpan Timeout { get; init; } = TimeSpan.FromSeconds(10);

    /// <summary>Options of a client; asks for the password when no file has it.</summary>
    /// <param name="environment">Who is asked.</param>
    /// <exception cref="CliException">They cannot be used.</exception>
    public KahunaClientOptions ToOptions(CliEnvironment environment)
    {
        if (TrustedCa is not null && HoldsNoCertificate(TrustedCa))
        {
            throw new CliException($"--trusted-ca: '{TrustedCa}' holds no certificate in PEM.");
        }

        KahunaClientOptions options = new()
        {
            TrustedCaFile = TrustedCa,
            Insecure = IsInsecure,
            RequestTimeout = Timeout,
            ConnectTimeout = Timeout < TimeSpan.FromSeconds(5) ? Timeout : TimeSpan.FromSeconds(5),
            Credentials = Access.ToCredentials(environment),
        };
        try
        {
            IEnumerable<string> nodes = Endpoints.Split(',', StringSplitOptions.TrimEntries).Select(WithScheme);
            options.Endpoints.Add(string.Join(',', nodes));
        }
        catch (FormatException refused)
        {
            throw new CliException($"The endpoints '{Endpoints}' cannot be used: {refused.Message}");
        }

        return options;
    }

    /// <summary>The file can be read and has none. What else is wrong with it is found later, and told.</summary>
    private static bool HoldsNoCertificate(string path)
    {
        try
        {
            return !File.ReadAllText(path).Contains("-----BEGIN CERTIFICATE-----", StringComparison.Ordinal);
        }
        catch (Exception failure) when (failure is IOException or UnauthorizedAccessException or ArgumentException)
        {
            return false;
        }
    }

    private static string WithScheme(string endpoint) =>
        endpoint.Length == 0 || endpoint.Contains("://", StringComparison.Ordinal) ? endpoint : "https://" + endpoint;
}
