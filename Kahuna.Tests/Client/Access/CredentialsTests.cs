using System.Text;
using Kahuna.Client;
using Kahuna.Client.Connection;
using Kahuna.Client.DependencyInjection;
using Kahuna.Tests.Hosting;
using Microsoft.Extensions.Configuration;
using Microsoft.Extensions.DependencyInjection;

namespace Kahuna.Tests.Client.Access;

/// <summary>What credentials may be, what goes over the wire, and that no secret is told.</summary>
public sealed class CredentialsTests : IDisposable
{
    private const string Secret = "s3cret-word";

    private readonly TemporaryDirectory _directory = new();

    public void Dispose() => _directory.Dispose();

    [Fact]
    public async Task A_password_is_sent_as_Basic_in_UTF_8()
    {
        Assert.Equal(
            "Basic " + Convert.ToBase64String(Encoding.UTF8.GetBytes("zoë:pass: wörd")),
            await HeaderAsync(KahunaCredentials.Password("zoë", "pass: wörd")));
        Assert.Equal("Bearer kahuna_a.b-c", await HeaderAsync(KahunaCredentials.Token("kahuna_a.b-c")));
    }

    [Fact]
    public async Task A_file_is_read_each_time_without_the_end_of_its_line()
    {
        string path = Written("one\r\n");
        KahunaCredentials token = KahunaCredentials.TokenFile(path);
        KahunaCredentials password = KahunaCredentials.PasswordFile("u", path);
        Assert.Equal("Bearer one", await HeaderAsync(token));
        File.WriteAllText(path, "two");
        Assert.Equal("Bearer two", await HeaderAsync(token));
        Assert.Equal("Basic " + Convert.ToBase64String("u:two"u8), await HeaderAsync(password));
    }

    [Theory]
    [InlineData("", Secret)]
    [InlineData("a:b", Secret)]
    [InlineData("a\nb", Secret)]
    [InlineData("a", "")]
    [InlineData("a", Secret + "\r\nx-admin: yes")]
    public void What_cannot_be_sent_as_a_password_is_refused(string user, string password)
    {
        ArgumentException refusal = Assert.Throws<ArgumentException>(() => KahunaCredentials.Password(user, password));
        Assert.DoesNotContain(Secret, refusal.Message, StringComparison.Ordinal);
    }

    [Fact]
    public void What_is_no_UTF_8_is_refused()
    {
        Assert.Throws<ArgumentException>(() => KahunaCredentials.Password("a\ud800", "p"));
        Assert.Throws<ArgumentException>(() => KahunaCredentials.Password("a", "p\ud800"));
    }

    [Fact]
    public void Names_and_secrets_have_a_longest()
    {
        KahunaCredentials.Password(new string('u', 128), new string('p', 1024));
        KahunaCredentials.Token(new string('t', 16_384));
        Assert.Throws<ArgumentException>(() => KahunaCredentials.Password(new string('u', 129), "p"));
        Assert.Throws<ArgumentException>(() => KahunaCredentials.Password("u", new string('p', 1025)));
        Assert.Throws<ArgumentException>(() => KahunaCredentials.Token(new string('t', 16_385)));
    }

    [Theory]
    [InlineData("")]
    [InlineData("two words")]
    [InlineData(Secret + "\n")]
    [InlineData(Secret + "ü")]
    public async Task A_token_that_would_not_stay_in_its_header_is_refused(string token)
    {
        ArgumentException refusal = Assert.Throws<ArgumentException>(() => KahunaCredentials.Token(token));
        Assert.DoesNotContain(Secret, refusal.Message, StringComparison.Ordinal);
        IOException renewed = await Assert.ThrowsAsync<IOException>(
            () => HeaderAsync(KahunaCredentials.Token(_ => new(token))));
        Assert.DoesNotContain(Secret, renewed.Message, StringComparison.Ordinal);
    }

    [Fact]
    public void The_age_of_renewal_is_more_than_zero() => Assert.Throws<ArgumentOutOfRangeException>(
        () => KahunaCredentials.Token(static _ => new("t"), TimeSpan.Zero));

    [Fact]
    public void They_show_no_secret()
    {
        string path = Written(Secret);
        KahunaCredentials[] all =
        [
            KahunaCredentials.Password("app", Secret), KahunaCredentials.Token(Secret),
            KahunaCredentials.Token(static _ => new(Secret)), KahunaCredentials.TokenFile(path),
            KahunaCredentials.PasswordFile("app", path),
            KahunaCredentials.ClientCertificate("c.pem", "k.pem", Secret),
        ];
        Assert.All(all, shown => Assert.DoesNotContain(Secret, shown.ToString(), StringComparison.Ordinal));
        Assert.Contains("\"app\"", all[0].ToString(), StringComparison.Ordinal);
        Assert.Contains("c.pem", all[^1].ToString(), StringComparison.Ordinal);
    }

    [Theory]
    [InlineData("user=app;password=p", "Basic YXBwOnA=")]
    [InlineData(" User = app ; ; PASSWORD = \"a;\"\"b=\" ;", "Basic YXBwOmE7ImI9")]
    [InlineData("token=abc=", "Bearer abc=")]
    public async Task Text_names_them(string text, string header) =>
        Assert.Equal(header, await HeaderAsync(KahunaCredentials.Parse(text)));

    [Fact]
    public async Task Text_names_files()
    {
        string path = Written(Secret);
        Assert.Equal("Bearer " + Secret, await HeaderAsync(KahunaCredentials.Parse($"token-file={path}")));
        Assert.Equal(
            await HeaderAsync(KahunaCredentials.Password("u", Secret)),
            await HeaderAsync(KahunaCredentials.Parse($"user=u;password-file={path}")));
        KahunaCredentials certificate = KahunaCredentials.Parse(
            $"client-certificate=c.pem;client-certificate-key=k.pem;client-certificate-password={Secret}");
        Assert.Null(await HeaderAsync(certificate));
        Assert.NotNull(certificate.Certificate);
    }

    [Theory]
    [InlineData("", "no credentials are given")]
    [InlineData("user=app", "user do not go together")]
    [InlineData("password=" + Secret, "password do not go together")]
    [InlineData("user=a;password=" + Secret + ";token=t", "password, token, user do not go together")]
    [InlineData("client-certificate-key=k", "do not go together")]
    [InlineData("user=a;user=b;password=" + Secret, "user is given twice")]
    [InlineData("user=;password=" + Secret, "user is empty")]
    [InlineData("user=a;password=\"" + Secret, "password has no closing quote")]
    [InlineData("user=a;password=\"" + Secret + "\"x", "password is empty, or something follows its closing quote")]
    [InlineData("user=a;password=p;" + Secret, "is not of the form key=value")]
    [InlineData(Secret + "=x", "a key is not known")]
    [InlineData("user=a:b;password=" + Secret, "the user's name must have")]
    public void Text_that_cannot_be_read_is_refused_without_its_values(string text, string sentence)
    {
        FormatException refusal = Assert.Throws<FormatException>(() => KahunaCredentials.Parse(text));
        Assert.Contains(sentence, refusal.Message, StringComparison.Ordinal);
        Assert.DoesNotContain(Secret, refusal.Message, StringComparison.Ordinal);
        ArgumentException refused = Assert.Throws<ArgumentException>(
            () => KahunaClient.Connect("https://a:1; " + (text.Length == 0 ? "user=" : text)));
        Assert.DoesNotContain(Secret, refused.Message, StringComparison.Ordinal);
    }

    [Fact]
    public async Task A_connection_string_and_configuration_take_them()
    {
        await using KahunaClient client = KahunaClient.Connect(
            "https://a:1,https://b:2;token=abc", options => Assert.Equal("token", options.Credentials!.ToString()));
        IConfiguration configuration = new ConfigurationBuilder()
            .AddInMemoryCollection([new("Endpoints", "https://a:1"), new("Credentials", "user=app;password=p")])
            .Build();
        ServiceCollection services = new();
        services.AddKahuna(options =>
        {
            configuration.Bind(options);
            Assert.Equal("password of user \"app\"", options.Credentials!.ToString());
        });
        await using ServiceProvider provider = services.BuildServiceProvider();
        Assert.NotNull(provider.GetRequiredService<KahunaClient>());
    }

    [Theory]
    [InlineData(null, "does not exist")]
    [InlineData("", "is empty")]
    [InlineData(" \n", "is empty")]
    [InlineData("a\nb\n", "has more than one line")]
    [InlineData("two words", "the token must have")]
    public void A_file_that_cannot_be_used_is_told_before_the_first_call(string? content, string sentence)
    {
        string path = content is null ? Path.Combine(_directory.Path, "missing") : Written(content);
        ArgumentException refusal = Assert.Throws<ArgumentException>(
            () => KahunaClient.Connect($"https://a:1;token-file={path}"));
        Assert.Contains(sentence, refusal.Message, StringComparison.Ordinal);
        ArgumentException certificate = Assert.Throws<ArgumentException>(
            () => KahunaClient.Connect($"https://a:1;client-certificate={path}"));
        Assert.Contains(
            $"the client certificate \"{path}\" cannot be used", certificate.Message, StringComparison.Ordinal);
    }

    [Fact]
    public async Task Nothing_is_sent_to_a_node_without_encryption()
    {
        await using GrpcFrameChannel channel = new(new KahunaClientOptions().ToSettings());
        IOException refusal = await Assert.ThrowsAsync<IOException>(
            () => channel.OpenAsync(new Uri("http://localhost:1"), "Bearer t", CancellationToken.None).AsTask());
        Assert.Contains("is not encrypted", refusal.Message, StringComparison.Ordinal);
    }

    private static Task<string?> HeaderAsync(KahunaCredentials credentials) =>
        credentials.Source.ReadAsync(CancellationToken.None).AsTask();

    private string Written(string content)
    {
        string path = Path.Combine(_directory.Path, Guid.NewGuid().ToString("N"));
        File.WriteAllText(path, content);
        return path;
    }
}
