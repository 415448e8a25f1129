using System.Text.Json;
using Kahuna.Tests.Deployment;

namespace Kahuna.Tests.Hosting.Page;

/// <summary>
/// A browser with one client certificate in its store, which it shows to each site that asks without asking its user.
/// Owned by one test.
/// </summary>
public sealed class CertificateBrowser : Chromium
{
    /// <summary>
    /// Where a policy of the machine (AutoSelectCertificateForUrls) puts its rules; a profile may begin with some.
    /// </summary>
    private const string RulesPreference = "profile.managed_auto_select_certificate_for_urls";

    private readonly TemporaryDirectory _home = new();

    /// <summary>Starts one.</summary>
    /// <param name="pkcs12">The certificate with its key, without a password.</param>
    internal static async Task<CertificateBrowser> StartAsync(byte[] pkcs12)
    {
        CertificateBrowser browser = new();
        string home = browser._home.Path;
        string file = Path.Combine(home, "certificate.p12");
        await File.WriteAllBytesAsync(file, pkcs12);
        string store = Directory.CreateDirectory(Path.Combine(home, ".pki", "nssdb")).FullName;
        Run("certutil", "-N", "-d", "sql:" + store, "--empty-password");
        Run("pk12util", "-i", file, "-d", "sql:" + store, "-W", "");
        string rule = JsonSerializer.Serialize(new { pattern = "*", filter = new { } });
        await browser.StartAsync("chromium", home, (RulesPreference, new[] { rule }));
        return browser;
    }

    /// <inheritdoc/>
    private protected override void Forget() => _home.Dispose();

    private static void Run(string program, params string[] arguments)
    {
        (int exitCode, string output) = Deployed.Run(program, arguments);
        Assert.True(exitCode == 0, $"{program}: {output}");
    }
}
