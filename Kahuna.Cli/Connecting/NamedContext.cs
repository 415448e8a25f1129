using System.Text.Json.Serialization;

namespace Kahuna.Cli.Connecting;

/// <summary>A cluster as the file of contexts has it. It names files and holds no secret. Immutable.</summary>
internal sealed record NamedContext
{
    public string? Endpoints { get; init; }

    public string? User { get; init; }

    public string? PasswordFile { get; init; }

    public string? TokenFile { get; init; }

    public string? ClientCertificate { get; init; }

    public string? ClientCertificateKey { get; init; }

    public string? TrustedCa { get; init; }

    /// <summary>How the context signs in.</summary>
    [JsonIgnore]
    public Access Access => new()
    {
        User = User,
        PasswordFile = PasswordFile,
        TokenFile = TokenFile,
        ClientCertificate = ClientCertificate,
        ClientCertificateKey = ClientCertificateKey,
    };
}
