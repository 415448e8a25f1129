using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using Kahuna.Client.Connection;
using Kahuna.Tests.Hosting;

namespace Kahuna.Tests.Client;

/// <summary>The file of trusted authorities is what it is now, however it was replaced.</summary>
public sealed class CertificateFileTests : IDisposable
{
    private readonly TemporaryDirectory _directory = new();

    private string Named => Path.Combine(_directory.Path, "ca.pem");

    public void Dispose() => _directory.Dispose();

    [Fact]
    public void A_mounted_secret_that_is_replaced_is_read_again()
    {
        // As Kubernetes mounts secrets: only "..data" moves. Length and time of both versions are the same.
        string first = Version("v1", "CN=first-");
        string second = Version("v2", "CN=second");
        string data = Path.Combine(_directory.Path, "..data");
        Directory.CreateSymbolicLink(data, "v1");
        File.CreateSymbolicLink(Named, Path.Combine("..data", "ca.pem"));
        CertificateFile file = new(Named);
        Assert.Equal(first, Assert.Single(file.Read()).Thumbprint);
        Assert.Same(file.Read(), file.Read());

        Directory.Delete(data);
        Directory.CreateSymbolicLink(data, "v2");
        Assert.Equal(second, Assert.Single(file.Read()).Thumbprint);
    }

    [Theory]
    [InlineData("missing")]
    [InlineData("empty")]
    [InlineData("a directory")]
    public void While_it_cannot_be_read_the_certificates_from_before_stay(string how)
    {
        string first = Version("v1", "CN=first-");
        File.Copy(Path.Combine(_directory.Path, "v1", "ca.pem"), Named);
        CertificateFile file = new(Named);
        file.Read();
        File.Delete(Named);
        if (how == "empty")
        {
            File.WriteAllText(Named, string.Empty);
        }
        else if (how == "a directory")
        {
            Directory.CreateDirectory(Named);
        }

        Assert.Equal(first, Assert.Single(file.Read()).Thumbprint);
        Assert.Contains(
            Named,
            Assert.Throws<IOException>(() => new CertificateFile(Named).Read()).Message,
            StringComparison.Ordinal);
    }

    /// <summary>A version of the secret; says its certificate's thumbprint.</summary>
    private string Version(string name, string subject)
    {
        using ECDsa key = ECDsa.Create(ECCurve.NamedCurves.nistP256);
        CertificateRequest request = new(subject, key, HashAlgorithmName.SHA256);
        using X509Certificate2 made = request.CreateSelfSigned(
            CertificateFiles.Start, CertificateFiles.Start.AddDays(365));
        Directory.CreateDirectory(Path.Combine(_directory.Path, name));
        string path = Path.Combine(_directory.Path, name, "ca.pem");

        // ECDSA signatures differ in length, text after the certificate does no harm.
        File.WriteAllText(path, made.ExportCertificatePem().PadRight(1_000, '\n'));
        File.SetLastWriteTimeUtc(path, CertificateFiles.Start.UtcDateTime);
        return made.Thumbprint;
    }
}
