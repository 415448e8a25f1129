using System.Text;
using Kahuna.Server.Api.Access;
using Microsoft.Extensions.Primitives;

namespace Kahuna.Tests.Api.Access;

/// <summary>What a client may write into its header, and what is refused.</summary>
public sealed class AuthorizationHeaderTests
{
    [Theory]
    [InlineData("Basic", "ann:secret", "ann", "secret")]
    [InlineData("BASIC", "ann:a:b", "ann", "a:b")]
    [InlineData("basic", "ann:", "ann", "")]
    [InlineData("Basic", "änn:pässwort €", "änn", "pässwort €")]
    public void Basic_is_user_and_password_in_utf8(string scheme, string text, string user, string password)
    {
        AuthorizationHeader? header = Parse(Basic(scheme, text));

        Assert.Equal(user, header?.User);
        Assert.Equal(password, header?.Secret);
    }

    [Fact]
    public void Bearer_is_a_token()
    {
        AuthorizationHeader? header = Parse("bearer  abc.def ");

        Assert.Null(header?.User);
        Assert.Equal("abc.def", header?.Secret);
    }

    [Theory]
    [InlineData("")]
    [InlineData("Basic")]
    [InlineData("Basic !!!")]
    [InlineData("Basic YQ")]
    [InlineData("Bearer")]
    [InlineData("Bearer ")]
    [InlineData("Bearer a b")]
    [InlineData("Bearer ä")]
    [InlineData("Digest a=b")]
    [InlineData("Negotiate YQ==")]
    public void Anything_else_is_refused(string text) => Assert.Null(Parse(text));

    [Theory]
    [InlineData("no colon")]
    [InlineData(":password without a user")]
    [InlineData("ann\0:x")]
    [InlineData("ann\r\n:x")]
    [InlineData("ann:x\u0085y")]
    public void Basic_without_a_user_or_with_control_characters_is_refused(string text) =>
        Assert.Null(Parse(Basic("Basic", text)));

    [Fact]
    public void What_is_not_utf8_is_refused() =>
        Assert.Null(Parse("Basic " + Convert.ToBase64String([(byte)'a', 0xff, (byte)':', (byte)'b'])));

    [Fact]
    public void Two_headers_are_refused() =>
        Assert.Null(AuthorizationHeader.Parse(
            new StringValues([Basic("Basic", "ann:x"), Basic("Basic", "bob:x")]), out _));

    [Fact]
    public void A_header_that_is_too_long_is_refused() =>
        Assert.Null(Parse("Bearer " + new string('a', AuthorizationHeader.CharactersMax)));

    [Fact]
    public void The_secret_is_not_shown() =>
        Assert.DoesNotContain("secret", Parse(Basic("Basic", "ann:secret"))!.ToString(), StringComparison.Ordinal);

    private static string Basic(string scheme, string text) =>
        $"{scheme} {Convert.ToBase64String(Encoding.UTF8.GetBytes(text))}";

    private static AuthorizationHeader? Parse(string text) => AuthorizationHeader.Parse(text, out _);
}
