using System.Net;
using System.Security.Cryptography;
using System.Text;
using Kahuna.Server.Hosting.Administration;

namespace Kahuna.Tests.Hosting.Administration;

/// <summary>Where the keys of an issuer come from, and when they are asked for again.</summary>
public sealed class JwtKeySourcesTests : IDisposable
{
    private const string Issuer = "https://issuer.example";

    private readonly TemporaryDirectory _directory = new();
    private readonly SteppedTime _time = new();
    private readonly LineRecorder _log = new();
    private readonly Answers _answers = new();

    public void Dispose() => _directory.Dispose();

    [Fact]
    public void A_changed_file_is_read_again_and_an_unusable_one_changes_nothing()
    {
        string path = _directory.File("keys.pem", Pem());
        JwtKeyFile keys = new(path, _log);
        object first = keys.Current;
        keys.Check();
        Assert.Same(first, keys.Current);

        File.WriteAllText(path, "half written");
        keys.Check();
        keys.Check();
        Assert.Same(first, keys.Current);
        Assert.Single(_log.Lines);

        File.WriteAllText(path, Pem() + Pem());
        keys.Check();
        Assert.Equal(2, keys.Current.Count);
    }

    [Fact]
    public void A_file_without_keys_is_refused_at_the_start()
    {
        Assert.Throws<InvalidDataException>(() => new JwtKeyFile(_directory.File("keys.pem", "nothing"), _log));
        Assert.Throws<InvalidDataException>(() => new JwtKeyFile(Path.Combine(_directory.Path, "none"), _log));
    }

    [Fact]
    public async Task An_address_of_keys_is_asked_twice_a_minute_at_most()
    {
        _answers.Content["/keys"] = Pem();
        using JwtKeyAddress keys = Address("/keys");
        Assert.Empty(keys.Current);
        Assert.True(await keys.RefreshAsync(CancellationToken.None));
        Assert.Single(keys.Current);
        object first = keys.Current;

        for (int i = 0; i < 100; i++)
        {
            Assert.False(await keys.RefreshAsync(CancellationToken.None));
        }

        Assert.Equal(1, _answers.Asked);
        _time.Now += TimeSpan.FromSeconds(30);
        Assert.False(await keys.RefreshAsync(CancellationToken.None));
        Assert.Equal(2, _answers.Asked);
        Assert.Same(first, keys.Current);
    }

    [Fact]
    public async Task Without_an_answer_the_known_keys_count()
    {
        _answers.Content["/keys"] = Pem();
        using JwtKeyAddress keys = Address("/keys");
        await keys.RefreshAsync(CancellationToken.None);
        foreach (string? answer in (string?[])[null, "nothing", "{}", "{\"keys\":[]}", "["])
        {
            _answers.Content["/keys"] = answer;
            _time.Now += TimeSpan.FromMinutes(1);
            Assert.False(await keys.RefreshAsync(CancellationToken.None));
            Assert.Single(keys.Current);
        }
    }

    [Fact]
    public async Task An_OpenID_configuration_names_the_keys()
    {
        _answers.Content["/config"] = Configuration(Issuer, Issuer + "/keys");
        _answers.Content["/keys"] = Pem();
        using JwtKeyAddress keys = Address("/config");

        Assert.True(await keys.RefreshAsync(CancellationToken.None));
        Assert.Single(keys.Current);
    }

    [Theory]
    [InlineData("https://other.example", Issuer + "/keys")]
    [InlineData(Issuer, "http://issuer.example/keys")]
    [InlineData(Issuer, "file:///etc/passwd")]
    [InlineData(Issuer, "keys")]
    public async Task One_of_another_issuer_or_with_keys_elsewhere_is_refused(string issuer, string keysAt)
    {
        _answers.Content["/config"] = Configuration(issuer, keysAt);
        _answers.Content["/keys"] = Pem();
        using JwtKeyAddress keys = Address("/config");

        Assert.False(await keys.RefreshAsync(CancellationToken.None));
        Assert.Empty(keys.Current);
        Assert.Equal(1, _answers.Asked);
    }

    private static string Configuration(string issuer, string keys) =>
        $$"""{"issuer":"{{issuer}}","jwks_uri":"{{keys}}"}""";

    private static string Pem()
    {
        using ECDsa key = ECDsa.Create(ECCurve.NamedCurves.nistP256);
        return key.ExportSubjectPublicKeyInfoPem() + "\n";
    }

    private JwtKeyAddress Address(string path) => new(new Uri(Issuer + path), Issuer, _log, _time, _answers);

    /// <summary>Answers by path; null is an error of the server. Owned by the test.</summary>
    private sealed class Answers : HttpMessageHandler
    {
        public Dictionary<string, string?> Content { get; } = [];

        public int Asked { get; private set; }

        protected override Task<HttpResponseMessage> SendAsync(
            HttpRequestMessage request, CancellationToken cancellationToken)
        {
            Asked++;
            return Task.FromResult(
                Content.GetValueOrDefault(request.RequestUri!.AbsolutePath) is { } text
                    ? new HttpResponseMessage(HttpStatusCode.OK)
                    {
                        Content = new ByteArrayContent(Encoding.UTF8.GetBytes(text)),
                    }
                    : new HttpResponseMessage(HttpStatusCode.InternalServerError));
        }
    }
}
