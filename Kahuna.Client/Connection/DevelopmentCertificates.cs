namespace Kahuna.Client.Connection;

/// <summary>Where a local server keeps the development certificate authority that it made, and where clients look for it. The only place of client and server that names the path. Stateless, any thread.</summary>
internal static class DevelopmentCertificates
{
    /// <summary>Environment variable that moves the directory.</summary>
    public const string DirectoryVariable = "KAHUNA_DEV_CERT_DIR";

    /// <summary>File name of the authority's certificate, PEM.</summary>
    public const string AuthorityFile = "ca.pem";

    /// <summary>The directory of the authority; it need not exist.</summary>
    public static string Directory() =>
        Environment.GetEnvironmentVariable(DirectoryVariable) is { } named && !string.IsNullOrWhiteSpace(named)
            ? Path.GetFullPath(named)
            : Path.Combine(Environment.GetFolderPath(Environment.SpecialFolder.LocalApplicationData, Environment.SpecialFolderOption.DoNotVerify), "kahuna", "dev-ca");

    /// <summary>The authority's certificate file.</summary>
    public static string AuthorityPath() => Path.Combine(Directory(), AuthorityFile);
}
