namespace Kahuna.Client.Connection;

/// <summary>
/// Where a local server keeps its development certificate authority and clients look for it. The only place that names
/// the path. Stateless, any thread.
/// </summary>
internal static class DevelopmentAuthority
{
    /// <summary>Environment variable that overrides the directory.</summary>
    public const string DirectoryVariable = "KAHUNA_DEV_CERT_DIR";

    /// <summary>File name of the authority's certificate, PEM.</summary>
    public const string AuthorityFile = "ca.pem";

    /// <summary>The authority's directory; it need not exist.</summary>
    public static string Directory() =>
        Environment.GetEnvironmentVariable(DirectoryVariable) is { } named && !string.IsNullOrWhiteSpace(named)
            ? Path.GetFullPath(named)
            : Path.Combine(
                Environment.GetFolderPath(
                    Environment.SpecialFolder.LocalApplicationData, Environment.SpecialFolderOption.DoNotVerify),
                "kahuna",
                "dev-ca");

    /// <summary>The authority's certificate file.</summary>
    public static string AuthorityPath() => Path.Combine(Directory(), AuthorityFile);
}
