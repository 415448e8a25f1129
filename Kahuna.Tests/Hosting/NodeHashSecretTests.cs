using System.Globalization;
using System.Text;
using Kahuna.Client;
using Kahuna.Server.Hosting;
using Kahuna.Server.State.Rows;
using Kahuna.Tests.Client;
using Kahuna.Tests.Tidy;

namespace Kahuna.Tests.Hosting;

/// <summary>Every node draws the secret of its tables from a cryptographic source, and keeps it to itself.</summary>
public sealed class NodeHashSecretTests
{
    [Fact]
    public async Task Each_start_has_its_own_and_nothing_shows_it()
    {
        string directory = Directory.CreateTempSubdirectory("kahuna-secret-").FullName;
        HashSet<HashSecret> drawn = [];
        List<byte[]> seen = [];
        for (int start = 0; start < 2; start++)
        {
            await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(3, directory)
                .WaitAsync(Wait.Longest);
            await using (KahunaClient client = PatientClient.Connect(cluster.Endpoints))
            {
                for (int i = 0; i < 100; i++)
                {
                    await client.KeyValues.SetAsync($"key-{i}", "value");
                }
            }

            Assert.All(cluster.Nodes, node => Assert.True(drawn.Add(node.HashSecret), "Two starts have one secret."));
            using HttpClient http = new(new SocketsHttpHandler
            {
                SslOptions = { RemoteCertificateValidationCallback = static (_, _, _, _) => true },
            });
            foreach (KahunaNode node in cluster.Nodes)
            {
                seen.Add(Encoding.UTF8.GetBytes(await http.GetStringAsync(new Uri(node.Options.Advertise, "/status"))));
                seen.Add(Encoding.UTF8.GetBytes(node.Options.ToString()));
            }
        }

        // The logs and stored states, which are what others get as snapshots, as the nodes have left them at their end.
        seen.AddRange(Directory.EnumerateFiles(directory, "*", SearchOption.AllDirectories).Select(File.ReadAllBytes));
        Assert.True(seen.Count > 20);
        Assert.Equal(6, drawn.Count);
        Assert.All(
            drawn.SelectMany(Forms), form => Assert.DoesNotContain(seen, bytes => bytes.AsSpan().IndexOf(form) >= 0));
        Directory.Delete(directory, recursive: true);
    }

    /// <summary>
    /// A random number generator that can be foreseen would make tables as easy to flood as no secret does.
    /// </summary>
    [Fact]
    public void It_comes_from_a_cryptographic_source_and_nowhere_else()
    {
        string[] made = [.. Repository.SourceFiles
            .Where(static file => file.StartsWith("Kahuna.Server/", StringComparison.Ordinal))
            .SelectMany(static file => Repository.Lines(file).Where(
                static line => line.Contains("HashSecret.From(", StringComparison.Ordinal)
                    || line.Contains("new HashSecret(", StringComparison.Ordinal)))];
        Assert.Equal(
            ["HashSecret = HashSecret.From(RandomNumberGenerator.GetBytes(HashSecret.Bytes));"],
            made.Select(static line => line.Trim()));
    }

    /// <summary>How either half could be written down.</summary>
    private static IEnumerable<byte[]> Forms(HashSecret secret) =>
        new[] { secret.First, secret.Second }.SelectMany(static half => new[]
    {
        BitConverter.GetBytes(half),
        [.. BitConverter.GetBytes(half).Reverse()],
        Encoding.UTF8.GetBytes(half.ToString(CultureInfo.InvariantCulture)),
        Encoding.UTF8.GetBytes(half.ToString("x16", CultureInfo.InvariantCulture)),
        Encoding.UTF8.GetBytes(half.ToString("X16", CultureInfo.InvariantCulture)),
    });
}
