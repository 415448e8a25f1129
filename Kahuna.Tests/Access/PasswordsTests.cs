using System.Security.Cryptography;
using System.Text;
using Kahuna.Server.Access;

namespace Kahuna.Tests.Access;

/// <summary>Hashes of passwords, and texts of tokens.</summary>
public sealed class PasswordsTests
{
    [Fact]
    public void A_password_is_verified_against_its_hash_alone()
    {
        PasswordHash hash = Passwords.Hash("correct horse");
        Assert.Equal((210_000, 16, 32), (hash.Iterations, hash.Salt.Length, hash.Hash.Length));
        Assert.True(Passwords.Verify(hash, "correct horse"));
        Assert.False(Passwords.Verify(hash, "correct horse "));
        Assert.False(Passwords.Verify(hash, ""));
        Assert.NotEqual(hash.Salt, Passwords.Hash("correct horse").Salt);
    }

    [Fact]
    public void The_hash_is_the_published_one()
    {
        // RFC 7914, section 11: PBKDF2-HMAC-SHA-256 of "passwd" and "salt", one round, the first 32 bytes.
        byte[] expected = Convert.FromHexString("55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc");
        Assert.True(Passwords.Verify(new PasswordHash(1, Encoding.UTF8.GetBytes("salt"), expected), "passwd"));
        expected[^1] ^= 1;
        Assert.False(Passwords.Verify(new PasswordHash(1, Encoding.UTF8.GetBytes("salt"), expected), "passwd"));
    }

    [Fact]
    public void An_empty_hash_is_no_password()
    {
        Assert.False(Passwords.Verify(new PasswordHash(1, [1], []), ""));
        Assert.False(Passwords.Verify(new PasswordHash(1, [1], []), "x"));
    }

    [Fact]
    public void A_token_is_taken_apart_as_it_was_put_together()
    {
        for (int i = 0; i < 200; i++)
        {
            Guid id = TokenText.NewId();
            byte[] secret = TokenText.NewSecret();
            string text = TokenText.Of(id, secret);
            Assert.StartsWith("kahuna_", text);
            Assert.Equal(73, text.Length);
            Assert.True(TokenText.TryParse(text, out Guid read, out byte[]? readSecret));
            Assert.Equal(id, read);
            Assert.Equal(secret, readSecret);
        }
    }

    [Fact]
    public void The_id_is_shown_in_hexadecimal() => Assert.Equal(
        "0102030405060708090a0b0c0d0e0f10", TokenText.IdText(Guid.Parse("01020304-0506-0708-090a-0b0c0d0e0f10")));

    [Fact]
    public void Other_texts_are_no_tokens()
    {
        string good = TokenText.Of(TokenText.NewId(), new byte[32]);
        string[] bad =
        [
            "", "kahuna_", good[..^1], good + "A", " " + good, good + "\n", "Kahuna_" + good[7..],
            "kahuna-" + good[7..],
            good[..29] + "-" + good[30..], good[..10] + "+" + good[11..], good[..10] + " " + good[11..],
            good[..^1] + "=", good[..40] + "é" + good[41..],
        ];
        Assert.All(bad, static text => Assert.False(TokenText.TryParse(text, out _, out _), text));
    }

    [Fact]
    public void Only_the_secret_of_the_token_opens_it()
    {
        byte[] secret = TokenText.NewSecret();
        TokenRecord token = new(TokenText.NewId(), 1, TokenText.Hash(secret), 1, 0, "");
        Assert.Equal(SHA256.HashData(secret), token.SecretHash);
        Assert.True(TokenText.Verify(token, secret));
        byte[] other = [.. secret];
        other[31] ^= 1;
        Assert.False(TokenText.Verify(token, other));
        Assert.False(TokenText.Verify(token, []));
        Assert.False(TokenText.Verify(token with { SecretHash = [] }, secret));
    }

    [Fact]
    public void A_token_expires_at_its_time()
    {
        TokenRecord token = new(TokenText.NewId(), 1, [], 1, 1_000, "");
        Assert.False(token.IsExpired(DateTimeOffset.FromUnixTimeMilliseconds(999)));
        Assert.True(token.IsExpired(DateTimeOffset.FromUnixTimeMilliseconds(1_000)));
        Assert.False((token with { ExpiresMs = 0 }).IsExpired(DateTimeOffset.MaxValue));
    }
}
