using System.Net;
using System.Security.Cryptography.X509Certificates;
using System.Text.Json;
using Kahuna.Server.Hosting;
using Kahuna.Server.Hosting.Certificates;
using Kahuna.Server.Transport;
using Kahuna.Tests.Transport;

namespace Kahuna.Tests.Hosting;

/// <summary>What <c>/status</c> says about certificates and connections.</summary>
public sealed class DoorStatusTests
{
    [Fact]
    public void It_shows_the_first_expiry_and_what_was_refused()
    {
        NodeTls tls = new NodeAuthority().For("node.example");
        DateTime end = tls.Certificate.TargetCertificate.NotAfter.ToUniversalTime();
        SteppedTime time = new();
        time.Now = end - time.GetUtcNow().UtcDateTime - TimeSpan.FromHours(2);
        AddressLimiter addresses = new(1);
        Assert.True(addresses.TryEnter(IPAddress.Parse("10.0.0.1"), out AddressSlot? slot));
        Assert.False(addresses.TryEnter(IPAddress.Parse("10.0.0.1"), out _));
        DoorStatus status = new(new TlsSource(tls.Certificate, tls.TrustedRoots), null, addresses, time);
        JsonElement certificate = Render(status).GetProperty("certificate");
        JsonElement connections = Render(status).GetProperty("connections");

        Assert.Equal("The certificate", certificate.GetProperty("part").GetString());
        Assert.Equal("CN=node.example", certificate.GetProperty("subject").GetString());
        Assert.Equal(end, certificate.GetProperty("expires").GetDateTimeOffset().UtcDateTime);
        Assert.Equal(7200, certificate.GetProperty("secondsLeft").GetInt64());
        Assert.Equal(
            (1, 1, 1, 1),
            (connections.GetProperty("counted").GetInt32(), connections.GetProperty("addresses").GetInt32(),
                connections.GetProperty("maxPerAddress").GetInt32(), connections.GetProperty("refused").GetInt32()));

        slot!.Dispose();
        time.Now += TimeSpan.FromHours(3);
        Assert.Equal(0, Render(status).GetProperty("connections").GetProperty("counted").GetInt32());
        Assert.Equal(-3600, Render(status).GetProperty("certificate").GetProperty("secondsLeft").GetInt64());
    }

    [Fact]
    public void An_authority_of_client_certificates_may_be_the_first_to_expire()
    {
        using TemporaryDirectory directory = new();
        CertificateFiles files = new(directory.Path);
        files.WriteChain("client.example", 365, 365, 40, 30);
        TlsSource source = new(NodeCertificates.LoadCertificate(files.Certificate, files.Key), null);
        X509Certificate2Collection authorities = [];
        authorities.ImportFromPemFile(files.Authorities);
        SteppedTime time = new();
        JsonElement found = Render(new DoorStatus(source, () => authorities, new AddressLimiter(1), time));

        Assert.Equal(
            "The authority of client certificates", found.GetProperty("certificate").GetProperty("part").GetString());
        Assert.Equal("CN=root 2", found.GetProperty("certificate").GetProperty("subject").GetString());
        Assert.Equal(30 * 86400, found.GetProperty("certificate").GetProperty("secondsLeft").GetInt64());
    }

    private static JsonElement Render(DoorStatus status)
    {
        using MemoryStream stream = new();
        using (Utf8JsonWriter json = new(stream))
        {
            json.WriteStartObject();
            status.Write(json);
            json.WriteEndObject();
        }

        return JsonSerializer.Deserialize<JsonElement>(stream.ToArray());
    }
}
