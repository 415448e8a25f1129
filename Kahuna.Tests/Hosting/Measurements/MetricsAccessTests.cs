using System.Net;
using Kahuna.Server.Hosting;
using Kahuna.Server.Hosting.Options;
using Kahuna.Tests.Api.Grpc;
using Kahuna.Tests.Client;
using Microsoft.Extensions.Logging.Abstractions;

namespace Kahuna.Tests.Hosting.Measurements;

/// <summary>Who may read the metrics of a node that requires authentication.</summary>
public sealed class MetricsAccessTests : IDisposable
{
    private const string Token = "0123456789abcdef0123456789abcdef";

    private readonly TemporaryDirectory _directory = new();

    public void Dispose() => _directory.Dispose();

    [Fact]
    public async Task The_token_opens_the_metrics_and_nothing_else()
    {
        string file = Secret("token", Token + "\n");
        await using EmbeddedCluster cluster = await StartAsync(file);
        Uri node = cluster.Nodes[0].Options.Advertise;

        Assert.Equal(HttpStatusCode.OK, await GetAsync(node, "/metrics", "Bearer " + Token));
        Assert.Equal(HttpStatusCode.Unauthorized, await GetAsync(node, "/metrics", null));
        Assert.NotEqual(HttpStatusCode.OK, await GetAsync(node, "/metrics", "Bearer " + Token[..^1]));
        Assert.NotEqual(HttpStatusCode.OK, await GetAsync(node, "/metrics", "Bearer " + Token + "0"));
        Assert.NotEqual(HttpStatusCode.OK, await GetAsync(node, "/metrics", "Basic " + Token));
        Assert.NotEqual(HttpStatusCode.OK, await GetAsync(node, "/status", "Bearer " + Token));
        Assert.NotEqual(
            HttpStatusCode.OK, await GetAsync(node, "/v1/kv/a?durability=DURABILITY_PERSISTENT", "Bearer " + Token));
    }

    [Fact]
    public async Task Administrators_may_read_them_and_other_users_not()
    {
        string first = Secret("first", "root\nroot-password\n");
        await using EmbeddedCluster cluster = await StartAsync(null, first);
        Uri node = cluster.Nodes[0].Options.Advertise;
        string root = "Basic " + Convert.ToBase64String("root:root-password"u8);

        await Wait.UntilAsync(async () => await GetAsync(node, "/metrics", root) == HttpStatusCode.OK);
        Assert.Equal(
            HttpStatusCode.Unauthorized,
            await GetAsync(node, "/metrics", "Basic " + Convert.ToBase64String("root:wrong-password"u8)));
        Assert.Equal(HttpStatusCode.Unauthorized, await GetAsync(node, "/metrics", "Bearer " + Token));
    }

    [Fact]
    public void A_changed_file_replaces_the_token_and_an_unusable_one_does_not()
    {
        string file = Secret("token", Token);
        MetricsToken token = new(file, NullLogger.Instance);
        Assert.True(token.Matches(Token));

        File.WriteAllText(file, "another-token-of-32-characters--\n");
        token.Check();
        Assert.False(token.Matches(Token));
        Assert.True(token.Matches("another-token-of-32-characters--"));

        File.WriteAllText(file, "short");
        token.Check();
        Assert.True(token.Matches("another-token-of-32-characters--"));
        Assert.False(token.Matches("short"));

        File.Delete(file);
        token.Check();
        Assert.True(token.Matches("another-token-of-32-characters--"));
    }

    [Theory]
    [InlineData("", "must have one line")]
    [InlineData("too-short", "at least 16 characters")]
    [InlineData("two tokens that are long enough", "without spaces")]
    [InlineData("two-lines-of-a-token\ntwo-lines-of-a-token", "must have one line")]
    public void An_unusable_file_is_refused_in_one_line(string content, string expected)
    {
        string file = Secret("token", content);
        InvalidDataException error = Assert.Throws<InvalidDataException>(
            () => new MetricsToken(file, NullLogger.Instance));
        Assert.Contains(expected, error.Message, StringComparison.Ordinal);
        Assert.DoesNotContain('\n', error.Message);
    }

    [Fact]
    public void A_file_that_others_can_read_is_refused()
    {
        string file = Secret("token", Token);
        if (OperatingSystem.IsWindows())
        {
            return;
        }

        File.SetUnixFileMode(file, UnixFileMode.UserRead | UnixFileMode.OtherRead);
        Assert.Throws<InvalidDataException>(() => new MetricsToken(file, NullLogger.Instance));
    }

    [Theory]
    [InlineData("--metrics yes", "--metrics: 'yes' is not one of on, off.")]
    [InlineData("--otlp-endpoint collector:4317", "is no address of a receiver")]
    [InlineData("--otlp-endpoint ftp://collector", "is no address of a receiver")]
    [InlineData("--otlp-endpoint http://a:b@collector:4317", "is no address of a receiver")]
    [InlineData("--metrics off --otlp-endpoint http://collector:4317", "--otlp-endpoint needs '--metrics on'.")]
    [InlineData("--metrics-token-file missing", "there is no file")]
    [InlineData("--metrics-token-file missing", "--metrics-token-file needs '--auth required'.")]
    public void Wrong_options_are_refused(string arguments, string expected)
    {
        NodeOptionsResult result = NodeOptionsParser.Parse(arguments.Split(' '), new Dictionary<string, string>());
        Assert.Contains(result.Errors, error => error.Contains(expected, StringComparison.Ordinal));
    }

    private static Task<EmbeddedCluster> StartAsync(string? tokenFile, string? bootstrap = null) =>
        EmbeddedCluster.StartAsync(1, configure: options => options with
        {
            Access = new AccessOptions
            {
                Mode = AuthMode.Required,
                IsModeGiven = true,
                BootstrapFile = bootstrap,
                MetricsTokenFile = tokenFile,
            },
        }).WaitAsync(Wait.Longest);

    private static async Task<HttpStatusCode> GetAsync(Uri node, string path, string? authorization)
    {
        using HttpMessageInvoker invoker = RawHttp.AnyServer();
        using HttpRequestMessage request = new(HttpMethod.Get, new Uri(node, path));
        if (authorization is not null)
        {
            request.Headers.TryAddWithoutValidation("authorization", authorization);
        }

        using HttpResponseMessage response = await invoker.SendAsync(request, CancellationToken.None);
        return response.StatusCode;
    }

    private string Secret(string name, string content)
    {
        string file = _directory.File(name, content);
        if (!OperatingSystem.IsWindows())
        {
            File.SetUnixFileMode(file, UnixFileMode.UserRead | UnixFileMode.UserWrite);
        }

        return file;
    }
}
