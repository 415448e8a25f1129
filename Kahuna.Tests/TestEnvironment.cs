using System.Runtime.CompilerServices;

namespace Kahuna.Tests;

/// <summary>
/// Gives this test run a development authority of its own, so that tests neither read nor change the user's.
/// </summary>
internal static class TestEnvironment
{
    /// <summary>The folder of the authority, beside the tests.</summary>
    public const string CertificateFolder = "dev-ca";

    [ModuleInitializer]
    internal static void Prepare() => Environment.SetEnvironmentVariable(
        "KAHUNA_DEV_CERT_DIR", Path.Combine(AppContext.BaseDirectory, CertificateFolder));
}
