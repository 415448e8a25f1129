using System.Security.Cryptography;
using System.Text;
using System.Text.Json.Nodes;
using Kahuna.Server.Access;
using Kahuna.Server.Api.Access;
using Kahuna.Tests.Hosting;
using Microsoft.IdentityModel.Tokens;

namespace Kahuna.Tests.Api.Access;

/// <summary>
/// JSON Web Tokens, made by hand, so that those which no library makes are among them. The attacks are those of
/// RFC 8725, section 2.
/// </summary>
public sealed class JwtSignInTests : IDisposable
{
    private const string Issuer = "https://issuer.example";
    private const string Audience = "kahuna";

    /// <summary>One for all tests, because a new one takes longer than most of them.</summary>
    private static readonly RSA s_rsa = RSA.Create(2048);

    private readonly SteppedTime _time = new();
    private readonly ECDsa _ec = ECDsa.Create(ECCurve.NamedCurves.nistP256);
    private readonly KnownUsers _users;
    private readonly FixedKeys _keys = new();
    private readonly JwtSignIn _jwts;

    public JwtSignInTests()
    {
        _users = new KnownUsers(_time);
        _users.Add(1, "ann");
        _keys.Current = JwtKeySet.Read(Encoding.ASCII.GetBytes(
            s_rsa.ExportSubjectPublicKeyInfoPem() + "\n" + _ec.ExportSubjectPublicKeyInfoPem()));
        _jwts = new JwtSignIn(_users.State, new JwtSettings(Issuer, Audience, "sub"), _keys, _time);
    }

    public void Dispose() => _ec.Dispose();

    [Fact]
    public async Task A_token_of_the_issuer_is_its_user()
    {
        Caller? caller = (await CheckAsync(Rs256(Claims()))).Caller;

        Assert.Equal((1u, "ann", CallerMethod.Jwt), (caller!.UserId, caller.Name, caller.Method));
        Assert.Null(caller.End);
    }

    [Fact]
    public async Task Elliptic_curves_and_pss_will_do()
    {
        Assert.NotNull((await CheckAsync(Signed("ES256", Claims(), Es256))).Caller);
        Assert.NotNull((await CheckAsync(Signed("PS256", Claims(), text => s_rsa.SignData(
            text, HashAlgorithmName.SHA256, RSASignaturePadding.Pss)))).Caller);
    }

    [Theory]
    [InlineData("none")]
    [InlineData("None")]
    [InlineData("NONE")]
    [InlineData("")]
    public async Task Without_a_signature_it_is_nobody(string algorithm)
    {
        Assert.Null((await CheckAsync(Signed(algorithm, Claims(), static _ => []))).Caller);

        // Nor when it has the signature of a good one.
        string good = Rs256(Claims());
        string signature = good[(good.LastIndexOf('.') + 1)..];
        string bare = Signed(algorithm, Claims(), static _ => []);
        Assert.Null((await CheckAsync(bare + signature)).Caller);
    }

    [Fact]
    public async Task The_public_key_is_no_secret_of_an_hmac()
    {
        byte[][] secrets =
        [
            Encoding.ASCII.GetBytes(s_rsa.ExportSubjectPublicKeyInfoPem()),
            Encoding.ASCII.GetBytes(s_rsa.ExportSubjectPublicKeyInfoPem() + "\n"),
            s_rsa.ExportSubjectPublicKeyInfo(),
            s_rsa.ExportRSAPublicKey(),
            _ec.ExportSubjectPublicKeyInfo(),
        ];
        foreach (byte[] secret in secrets)
        {
            Assert.Null((await CheckAsync(
                Signed("HS256", Claims(), text => HMACSHA256.HashData(secret, text)))).Caller);
        }
    }

    [Fact]
    public async Task A_key_that_the_token_brings_along_does_not_count()
    {
        using RSA own = RSA.Create(2048);
        RSAParameters key = own.ExportParameters(includePrivateParameters: false);
        JsonObject header = new()
        {
            ["alg"] = "RS256",
            ["jwk"] = new JsonObject
            {
                ["kty"] = "RSA",
                ["n"] = Base64UrlEncoder.Encode(key.Modulus),
                ["e"] = Base64UrlEncoder.Encode(key.Exponent),
            },
            ["jku"] = "https://attacker.example/keys",
        };

        Assert.Null((await CheckAsync(Signed(header, Claims(), text => own.SignData(
            text, HashAlgorithmName.SHA256, RSASignaturePadding.Pkcs1)))).Caller);
    }

    [Fact]
    public async Task Another_key_or_a_changed_content_is_nobody()
    {
        using RSA other = RSA.Create(2048);
        Assert.Null((await CheckAsync(Signed("RS256", Claims(), text => other.SignData(
            text, HashAlgorithmName.SHA256, RSASignaturePadding.Pkcs1)))).Caller);

        string[] parts = Rs256(Claims()).Split('.');
        _users.Add(2, "root", "admin");
        JsonObject changed = Claims();
        changed["sub"] = "root";
        Assert.Null((await CheckAsync($"{parts[0]}.{Part(changed)}.{parts[2]}")).Caller);
    }

    [Theory]
    [InlineData("iss", "https://other.example")]
    [InlineData("iss", null)]
    [InlineData("aud", "another service")]
    [InlineData("aud", null)]
    [InlineData("exp", null)]
    [InlineData("sub", null)]
    [InlineData("sub", "")]
    [InlineData("sub", "nobody")]
    public async Task A_token_that_says_something_else_is_nobody(string claim, string? value)
    {
        JsonObject claims = Claims();
        claims.Remove(claim);
        if (value is not null)
        {
            claims[claim] = value;
        }

        Assert.Null((await CheckAsync(Rs256(claims))).Caller);
    }

    [Fact]
    public async Task One_of_several_audiences_will_do()
    {
        JsonObject claims = Claims();
        claims["aud"] = new JsonArray("another service", Audience);

        Assert.NotNull((await CheckAsync(Rs256(claims))).Caller);
    }

    [Fact]
    public async Task It_holds_from_its_begin_to_its_end_and_half_a_minute()
    {
        JsonObject claims = Claims();
        claims["nbf"] = Now + 60;
        claims["exp"] = Now + 120;
        string token = Rs256(claims);
        Assert.Null((await CheckAsync(token)).Caller);
        _time.Now += TimeSpan.FromSeconds(30);
        Caller caller = (await CheckAsync(token)).Caller!;
        Assert.Null(caller.End);
        _time.Now += TimeSpan.FromSeconds(119);
        Assert.NotNull((await CheckAsync(token)).Caller);
        Assert.Null(caller.End);
        _time.Now += TimeSpan.FromSeconds(1);
        Assert.Null((await CheckAsync(token)).Caller);

        // What was begun with it is over as well.
        Assert.NotNull(caller.End);
    }

    [Theory]
    [InlineData("253402300799", true)]
    [InlineData("1e18", true)]
    [InlineData("9223372036854775807", true)]
    [InlineData("0", false)]
    [InlineData("-1", false)]
    [InlineData("-9223372036854775808", false)]
    [InlineData("\"tomorrow\"", false)]
    [InlineData("[]", false)]
    public async Task Strange_times_break_nothing(string expires, bool isFuture)
    {
        JsonObject claims = Claims();
        claims["exp"] = JsonNode.Parse(expires);
        SignIn signIn = await CheckAsync(Rs256(claims));

        // Whether a time beyond the calendar counts is the library's choice; one in the past never does.
        Assert.True(isFuture || signIn.Caller is null);
    }

    [Fact]
    public async Task Another_claim_may_name_the_user()
    {
        JwtSignIn mails = new(_users.State, new JwtSettings(Issuer, Audience, "email"), _keys, _time);
        JsonObject claims = Claims();
        claims["sub"] = "123";
        claims["email"] = "ann";

        Assert.NotNull((await mails.CheckAsync(Rs256(claims), "", CancellationToken.None)).Caller);
    }

    [Fact]
    public async Task A_key_that_is_gone_ends_what_it_signed()
    {
        string token = Rs256(Claims());
        Assert.NotNull((await CheckAsync(token)).Caller);
        using RSA next = RSA.Create(2048);
        _keys.Current = JwtKeySet.Read(Encoding.ASCII.GetBytes(next.ExportSubjectPublicKeyInfoPem()));

        Assert.Null((await CheckAsync(token)).Caller);
    }

    [Fact]
    public async Task An_unknown_key_is_asked_for()
    {
        using RSA next = RSA.Create(2048);
        _keys.Next = JwtKeySet.Read(Encoding.ASCII.GetBytes(next.ExportSubjectPublicKeyInfoPem()));
        JsonObject header = new() { ["alg"] = "RS256", ["kid"] = "next" };
        string token = Signed(
            header, Claims(), text => next.SignData(text, HashAlgorithmName.SHA256, RSASignaturePadding.Pkcs1));

        Assert.NotNull((await CheckAsync(token)).Caller);
        Assert.Equal(1, _keys.Asked);
    }

    [Theory]
    [InlineData("")]
    [InlineData(".")]
    [InlineData("..")]
    [InlineData("a.b.c")]
    [InlineData("a.b.c.d.e")]
    [InlineData("eyJhbGciOiJSUzI1NiJ9..")]
    [InlineData("{}.{}.{}")]
    public async Task What_is_no_token_is_nobody(string text) => Assert.Null((await CheckAsync(text)).Caller);

    [Fact]
    public void Keys_are_public_keys_only()
    {
        Assert.Throws<InvalidDataException>(() => Keys(s_rsa.ExportPkcs8PrivateKeyPem()));
        Assert.Throws<InvalidDataException>(() => Keys("no keys"));
        Assert.Throws<InvalidDataException>(() => Keys("{\"keys\":[]}"));
        Assert.Throws<InvalidDataException>(() => Keys("{\"keys\":[{\"kty\":\"oct\",\"k\":\"c2VjcmV0\"}]}"));
        Assert.Throws<InvalidDataException>(() => Keys("{"));
        using RSA small = RSA.Create(1024);
        Assert.Throws<InvalidDataException>(() => Keys(small.ExportSubjectPublicKeyInfoPem()));
        RSAParameters key = s_rsa.ExportParameters(includePrivateParameters: false);
        Assert.Single(Keys(new JsonObject
        {
            ["keys"] = new JsonArray(
                new JsonObject
                {
                    ["kty"] = "RSA",
                    ["kid"] = "a",
                    ["use"] = "sig",
                    ["n"] = Base64UrlEncoder.Encode(key.Modulus),
                    ["e"] = Base64UrlEncoder.Encode(key.Exponent),
                },
                new JsonObject { ["kty"] = "oct", ["k"] = "c2VjcmV0" }),
        }.ToJsonString()));
    }

    private static IReadOnlyList<SecurityKey> Keys(string text) => JwtKeySet.Read(Encoding.UTF8.GetBytes(text));

    private long Now => _time.GetUtcNow().ToUnixTimeSeconds();

    private JsonObject Claims() => new()
    {
        ["iss"] = Issuer,
        ["aud"] = Audience,
        ["sub"] = "ann",
        ["exp"] = Now + 3600,
    };

    private ValueTask<SignIn> CheckAsync(string text) => _jwts.CheckAsync(text, "", CancellationToken.None);

    private byte[] Es256(byte[] text) => _ec.SignData(text, HashAlgorithmName.SHA256);

    private string Rs256(JsonObject claims) => Signed("RS256", claims, text => s_rsa.SignData(
        text, HashAlgorithmName.SHA256, RSASignaturePadding.Pkcs1));

    private static string Signed(string algorithm, JsonObject claims, Func<byte[], byte[]> sign) =>
        Signed(new JsonObject { ["alg"] = algorithm, ["typ"] = "JWT" }, claims, sign);

    private static string Signed(JsonObject header, JsonObject claims, Func<byte[], byte[]> sign)
    {
        string text = $"{Part(header)}.{Part(claims)}";
        return $"{text}.{Base64UrlEncoder.Encode(sign(Encoding.ASCII.GetBytes(text)))}";
    }

    private static string Part(JsonObject content) => Base64UrlEncoder.Encode(content.ToJsonString());

    /// <summary>Keys that the test sets. Owned by the test.</summary>
    private sealed class FixedKeys : IJwtKeys
    {
        public IReadOnlyList<SecurityKey> Current { get; set; } = [];

        public IReadOnlyList<SecurityKey>? Next { get; set; }

        public int Asked { get; private set; }

        public ValueTask<bool> RefreshAsync(CancellationToken ct)
        {
            Asked++;
            if (Next is null)
            {
                return new(false);
            }

            (Current, Next) = (Next, null);
            return new(true);
        }
    }
}
