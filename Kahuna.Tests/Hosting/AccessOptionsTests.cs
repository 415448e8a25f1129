using System.Collections;
using Kahuna.Server.Hosting.Options;

namespace Kahuna.Tests.Hosting;

/// <summary>The options about who may do what, and what a node refuses to start with.</summary>
public sealed class AccessOptionsTests : IDisposable
{
    private readonly TemporaryDirectory _directory = new();

    public void Dispose() => _directory.Dispose();

    [Fact]
    public void On_loopback_addresses_nobody_has_to_sign_in()
    {
        Assert.Equal(AuthMode.None, Good().Mode);
        Assert.Equal(AuthMode.None, Good("--listen", "https://localhost:9000").Mode);
        Assert.Equal(AuthMode.Required, Good("--auth", "required").Mode);
    }

    [Theory]
    [InlineData("--listen", "https://0.0.0.0:8082", "--advertise", "https://127.0.0.1:8082")]
    [InlineData("--listen", "https://[::]:8082", "--advertise", "https://localhost:8082")]
    [InlineData("--listen", "https://127.0.0.1:8082,https://192.0.2.1:8082", "--advertise", "https://127.0.0.1:8082")]
    [InlineData("--advertise", "https://node.example:8082")]
    [InlineData("--listen", "https://127.0.0.1:8082", "--advertise", "https://node.example:8082")]
    public void A_node_that_others_can_reach_has_to_say_which(params string[] arguments)
    {
        string error = Assert.Single(Bad(arguments));

        Assert.Contains("--auth required", error, StringComparison.Ordinal);
        Assert.Contains("--auth none", error, StringComparison.Ordinal);
        Assert.Equal(AuthMode.None, Good([.. arguments, "--auth", "none"]).Mode);
        Assert.Equal(AuthMode.Required, Good([.. arguments, "--auth", "required"]).Mode);
    }

    [Theory]
    [InlineData("required")]
    [InlineData("REQUIRED")]
    public void The_word_may_be_written_in_any_case(string word) =>
        Assert.Equal(AuthMode.Required, Good("--auth", word).Mode);

    [Theory]
    [InlineData("")]
    [InlineData("1")]
    [InlineData("yes")]
    [InlineData("off")]
    [InlineData("none,required")]
    public void Any_other_word_is_refused(string word) => Assert.NotEmpty(Bad("--auth", word));

    [Fact]
    public void All_options_arrive()
    {
        string file = _directory.File("file", "x");
        string log = Path.Combine(_directory.Path, "audit.log");
        AccessOptions options = Good(
            "--auth", "required", "--auth-bootstrap-file", file, "--auth-client-ca", file,
            "--auth-jwt-issuer", "https://issuer.example", "--auth-jwt-audience", "kahuna", "--auth-jwt-keys", file,
            "--auth-jwt-user-claim", "email", "--audit-log", log, "--audit-log-mb", "5", "--audit-log-files", "3");

        Assert.Equal(
            new AccessOptions
            {
                Mode = AuthMode.Required,
                IsModeGiven = true,
                BootstrapFile = file,
                ClientCaPath = file,
                JwtIssuer = "https://issuer.example",
                JwtAudience = "kahuna",
                JwtKeys = file,
                JwtUserClaim = "email",
                AuditLogPath = log,
                AuditLogBytes = 5_000_000,
                AuditLogFiles = 3,
            },
            options);
    }

    [Fact]
    public void Options_that_mean_nothing_alone_are_refused()
    {
        string file = _directory.File("file", "x");
        Assert.Contains("--auth required", Assert.Single(Bad("--auth-client-ca", file)), StringComparison.Ordinal);
        Assert.Contains(
            "--auth required", Assert.Single(Bad("--auth", "none", "--auth-bootstrap-file", file)),
            StringComparison.Ordinal);
        Assert.Equal(2, Bad("--auth", "required", "--auth-jwt-issuer", "x").Count);
        Assert.Equal(3, Bad("--auth", "required", "--auth-jwt-user-claim", "x").Count);
        Assert.Single(Bad("--audit-log-mb", "5"));
        Assert.Single(Bad("--audit-log-files", "5"));
    }

    [Theory]
    [InlineData("https://issuer.example/keys", true)]
    [InlineData("http://issuer.example/keys", false)]
    [InlineData("https://user:secret@issuer.example/keys", false)]
    [InlineData("file:///etc/passwd", false)]
    [InlineData("/no/such/file", false)]
    public void Keys_come_from_a_file_or_over_https(string keys, bool isGood)
    {
        string[] arguments =
        [
            "--auth", "required", "--auth-jwt-issuer", "i", "--auth-jwt-audience", "a", "--auth-jwt-keys", keys,
        ];
        Assert.Equal(isGood, Parse(arguments).Errors.Count == 0);
    }

    [Theory]
    [InlineData("--audit-log-mb", "0")]
    [InlineData("--audit-log-mb", "x")]
    [InlineData("--audit-log-files", "0")]
    [InlineData("--audit-log-files", "-1")]
    public void Sizes_are_whole_numbers(string option, string value) =>
        Assert.Single(Bad("--audit-log", Path.Combine(_directory.Path, "a"), option, value));

    private AccessOptions Good(params string[] arguments)
    {
        NodeOptionsResult result = Parse(arguments);
        Assert.Empty(result.Errors);
        return result.Options!.Access;
    }

    private IReadOnlyList<string> Bad(params string[] arguments)
    {
        NodeOptionsResult result = Parse(arguments);
        Assert.Null(result.Options);
        return [.. result.Errors];
    }

    private NodeOptionsResult Parse(string[] arguments) =>
        NodeOptionsParser.Parse([.. arguments, "--data", _directory.Path], new Hashtable());
}
