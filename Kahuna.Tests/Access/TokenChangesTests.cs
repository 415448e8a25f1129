using Kahuna.Server.Access;
using Kahuna.Server.State.Meta;
using static Kahuna.Tests.Access.AccessAnswers;

namespace Kahuna.Tests.Access;

/// <summary>How tokens are made, and how they go: revoked, expired, or with their user.</summary>
public sealed class TokenChangesTests
{
    private readonly MemoryLedger _ledger = new();
    private readonly AccessChanges _changes;

    public TokenChangesTests() => _changes = new AccessChanges(_ledger, TimeProvider.System);

    private AccessBook Book => _ledger.Book;

    [Fact]
    public async Task A_token_is_shown_once_and_ends()
    {
        Good(await Create("a"));
        NewToken made = Good(await _changes.CreateTokenAsync("a", 60_000, "deploy", default));
        TokenRecord token = Book.FindToken(made.Token.Id)!;
        Assert.Equal((60_000L, "deploy"), (token.ExpiresMs - token.CreatedMs, token.Note));
        Assert.True(TokenText.TryParse(made.Text, out Guid id, out byte[]? secret));
        Assert.Equal(token.Id, id);
        Assert.True(TokenText.Verify(token, secret));
        Assert.False(AccessRowFormat.Of(token).Value.AsSpan().IndexOf(secret) >= 0, "the secret is stored");
        Good(await _changes.RevokeTokenAsync(id, default));
        Assert.Null(Book.FindToken(id));
    }

    [Theory]
    [InlineData(999, "")]
    [InlineData(-1, "")]
    [InlineData(315_360_000_001, "")]
    [InlineData(0, "a\nb")]
    public async Task A_token_has_a_life_and_a_note_that_are_valid(long expiresInMs, string note)
    {
        Good(await Create("a"));
        AssertRefused(
            AccessRefusal.InvalidArgument, await _changes.CreateTokenAsync("a", expiresInMs, note, default));
    }

    [Fact]
    public async Task Tokens_that_expired_long_ago_make_room()
    {
        Good(await Create("a"));
        PutTokens(1, AccessRules.TokensMax, expiresMs: 1);
        Good(await _changes.CreateTokenAsync("a", 0, "", default));
        Assert.Equal(AccessRules.TokensMax - 62, Book.Tokens.Count);
        MemoryLedger full = new();
        full.Put(AccessRowFormat.Of(new UserRecord(1, "a")));
        full.Put([.. Enumerable.Range(0, AccessRules.TokensMax).Select(static _ => TokenRow(1, 0))]);
        AssertRefused(
            AccessRefusal.ResourceExhausted,
            await new AccessChanges(full, TimeProvider.System).CreateTokenAsync("a", 0, "", default));
    }

    [Theory]
    [InlineData(0, 1)]
    [InlineData(63, 1)]
    [InlineData(64, 2)]
    [InlineData(200, 4)]
    public async Task A_deleted_user_leaves_no_tokens_and_is_disabled_before_they_go(int tokens, int changes)
    {
        Good(await Create("a"));
        Good(await Create("b"));
        PutTokens(1, tokens, expiresMs: 0);
        PutTokens(2, 3, expiresMs: 0);
        int asked = _ledger.Asked;
        int seen = tokens;
        _ledger.Before = _ =>
        {
            UserRecord user = Book.FindUser("a")!;
            int left = Book.Tokens.Count(static token => token.UserId == 1);
            Assert.True(user.IsDisabled || left == tokens, "tokens went while the user could sign in");
            Assert.True(left <= seen);
            seen = left;
        };
        Good(await _changes.DeleteUserAsync("a", default));
        Assert.Equal(changes, _ledger.Asked - asked);
        Assert.Null(Book.FindUser("a"));
        Assert.All(Book.Tokens, static token => Assert.Equal(2u, token.UserId));
        Assert.Equal(3, Book.Tokens.Count);
    }

    private static AccessRow TokenRow(uint user, long expiresMs) =>
        AccessRowFormat.Of(new TokenRecord(TokenText.NewId(), user, new byte[32], 1, expiresMs, ""));

    private Task<AccessAnswer<UserRecord>> Create(string name) =>
        _changes.CreateUserAsync(new UserChange { Name = name }, default);

    private void PutTokens(uint user, int count, long expiresMs) =>
        _ledger.Put([.. Enumerable.Range(0, count).Select(_ => TokenRow(user, expiresMs))]);
}
