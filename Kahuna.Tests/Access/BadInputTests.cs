using System.Security.Cryptography.X509Certificates;
using Grpc.Core;
using Kahuna.Client;
using Kahuna.Server.Access;

namespace Kahuna.Tests.Access;

/// <summary>
/// What a node answers to credentials that are none, and to changes that come in the middle of something: to the SDK
/// and to a foreign client the same.
/// </summary>
[Collection(AccessNodeCollection.Name)]
public sealed class BadInputTests(AccessNode node)
{
    private const int TriesMax = 20;

    private const string ExpiredToken = "expired token";
    private const string RevokedToken = "token of another cluster";
    private const string BareJwt = "JWT with alg none";
    private const string JwtOfNobody = "JWT of nobody";
    private const string WrongPassword = "wrong password";
    private const string UnknownUser = "unknown user";
    private const string EmptyPassword = "empty password";
    private const string NoToken = "something that is no token";

    public static TheoryData<string, bool> Cases()
    {
        TheoryData<string, bool> rows = [];
        foreach (string name in (string[])
        [
            ExpiredToken, RevokedToken, BareJwt, JwtOfNobody, WrongPassword, UnknownUser, EmptyPassword, NoToken,
        ])
        {
            rows.Add(name, false);
            if (name != EmptyPassword)
            {
                // The SDK does not even take that one.
                rows.Add(name, true);
            }
        }

        return rows;
    }

    [Theory]
    [MemberData(nameof(Cases))]
    public async Task Who_does_not_sign_in_gets_a_sentence_that_tells_nothing(string shown, bool isSdk)
    {
        await using AccessVisitor visitor = shown switch
        {
            WrongPassword => node.Visit(isSdk, "ann", "not it at all"),
            UnknownUser => node.Visit(isSdk, "nobody", "not it at all"),
            EmptyPassword => new ForeignVisitor(node.Channel(), AccessNode.Basic("ann", "")),
            ExpiredToken => Bearer(isSdk, await NewTokenAsync(expiresMs: 1)),
            RevokedToken => Bearer(isSdk, TokenText.Of(TokenText.NewId(), TokenText.NewSecret())),
            BareJwt => Bearer(isSdk, node.Jwt("ann", isSigned: false)),
            JwtOfNobody => Bearer(isSdk, node.Jwt("nobody", isSigned: true)),
            _ => Bearer(isSdk, "something-that-is-no-token"),
        };
        VisitAnswer[] answers =
        [
            await visitor.GetAsync("ann/a"),
            await visitor.SetAsync("ann/a"),
            await visitor.DeleteUserAsync("root"),
        ];
        Assert.All(answers, static answer =>
        {
            Assert.Equal(StatusCode.Unauthenticated, answer.Code);
            Assert.NotEmpty(answer.Sentence);
            Assert.DoesNotContain('\n', answer.Sentence);
            Assert.DoesNotContain("ann", answer.Sentence, StringComparison.OrdinalIgnoreCase);
        });
    }

    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task A_token_and_a_JWT_that_are_good_sign_in(bool isSdk)
    {
        foreach (string text in (string[])[await NewTokenAsync(expiresMs: 0), node.Jwt("ann", isSigned: true)])
        {
            await using AccessVisitor ann = Bearer(isSdk, text);
            Assert.Equal(StatusCode.OK, (await ann.SetAsync("ann/a")).Code);
            Assert.Equal(StatusCode.PermissionDenied, (await ann.SetAsync("bob/a")).Code);
        }
    }

    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task A_certificate_of_another_authority_does_nothing(bool isSdk)
    {
        (X509Certificate2 whole, string path) = node.CertificateOfAnother();
        using X509Certificate2 certificate = whole;
        await using AccessVisitor visitor = isSdk
            ? new SdkVisitor(node.Sdk(
                KahunaCredentials.ClientCertificate(path),
                static options => options.RequestTimeout = TimeSpan.FromSeconds(5)))
            : new ForeignVisitor(node.Channel(certificate), null);
        VisitAnswer answer = await visitor.SetAsync("ann/foreign");
        Assert.NotEqual(StatusCode.OK, answer.Code);
        Assert.NotEmpty(answer.Sentence);
        await using AccessVisitor ann = node.Visit(isSdk, "ann");
        Assert.Equal(StatusCode.OK, (await ann.SetAsync("ann/own")).Code);
    }

    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task A_role_that_does_not_exist_is_nobodys(bool isSdk)
    {
        await using AccessVisitor root = node.Visit(isSdk, "root");
        VisitAnswer answer = await root.CreateUserAsync("made", "no such role");
        Assert.Equal(StatusCode.NotFound, answer.Code);
        Assert.Contains("\"no such role\"", answer.Sentence, StringComparison.Ordinal);
        Assert.Null(node.Node.Access.State.Book.FindUser("made"));
    }

    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task The_last_administrator_stays(bool isSdk)
    {
        await using AccessVisitor root = node.Visit(isSdk, "root");
        VisitAnswer answer = await root.DeleteUserAsync("root");
        Assert.Equal(StatusCode.FailedPrecondition, answer.Code);
        Assert.Contains("administrator", answer.Sentence, StringComparison.Ordinal);
        Assert.Equal(StatusCode.NotFound, (await root.DeleteUserAsync("nobody")).Code);
    }

    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task What_a_renamed_user_has_open_goes_on_and_its_old_name_is_nobodys(bool isSdk)
    {
        await using AccessVisitor root = node.Visit(isSdk, "root");
        await using AccessVisitor bob = node.Visit(isSdk, "bob");
        Assert.Equal(StatusCode.OK, (await bob.SetAsync("bob/a")).Code);
        bool isRenamed = false;
        Task<VisitAnswer> WatchRenamedAsync(int waits) => bob.WatchAsync("bob/watched", async () =>
        {
            if (waits-- > 0)
            {
                await Task.Delay(200);
                return;
            }

            if (!isRenamed)
            {
                isRenamed = true;
                await node.ChangeAsync(node.With("bob", static user => user with { Name = "robert" }));
            }

            Assert.Equal(StatusCode.OK, (await root.SetAsync("bob/watched")).Code);
        });

        try
        {
            VisitAnswer watched = VisitAnswer.Missing;
            for (int tries = 1; watched != VisitAnswer.Good && tries <= TriesMax; tries++)
            {
                // On a busy machine the name may change before the watch has signed in with it; then once more.
                await node.ChangeAsync(node.With("bob", static user => user with { Name = "bob" }));
                isRenamed = false;
                watched = await WatchRenamedAsync(tries);
            }

            Assert.Equal(VisitAnswer.Good, watched);
            Assert.True(isRenamed);
            await using AccessVisitor old = node.Visit(isSdk, "bob");
            Assert.Equal(StatusCode.Unauthenticated, (await old.SetAsync("bob/a")).Code);
            await using AccessVisitor robert = node.Visit(isSdk, "robert", "bobbob");
            Assert.Equal(StatusCode.OK, (await robert.SetAsync("bob/a")).Code);
            if (isSdk)
            {
                // Its stream is one that was open before.
                Assert.Equal(StatusCode.OK, (await bob.SetAsync("bob/a")).Code);
            }
        }
        finally
        {
            await node.ChangeAsync(node.With("bob", static user => user with { Name = "bob" }));
        }
    }

    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task A_transaction_whose_right_is_taken_before_it_commits_leaves_nothing(bool isSdk)
    {
        await using AccessVisitor root = node.Visit(isSdk, "root");
        await using AccessVisitor ann = node.Visit(isSdk, "ann");
        string[] keys = [$"ann/taken {isSdk}", $"shared/taken {isSdk}"];
        try
        {
            VisitAnswer answer = await ann.SetAllAsync(
                keys, () => node.ChangeAsync(AccessRowFormat.Of(new RoleRecord(
                    "ann", [.. AccessCluster.Role("ann", "ann").Grants.Take(1)]))));
            Assert.Equal(StatusCode.PermissionDenied, answer.Code);
            Assert.Contains("shared/taken", answer.Sentence, StringComparison.Ordinal);
        }
        finally
        {
            await node.ChangeAsync(AccessRowFormat.Of(AccessCluster.Role("ann", "ann")));
        }

        foreach (string key in keys)
        {
            Assert.Equal(VisitAnswer.Missing, await root.GetAsync(key));
        }

        Assert.Equal(VisitAnswer.Good, await ann.SetAllAsync(keys));
    }

    private AccessVisitor Bearer(bool isSdk, string text) =>
        node.Visit(isSdk, KahunaCredentials.Token(text), "Bearer " + text);

    private async Task<string> NewTokenAsync(long expiresMs)
    {
        byte[] secret = TokenText.NewSecret();
        TokenRecord token = new(TokenText.NewId(), 2, TokenText.Hash(secret), 0, expiresMs, "");
        await node.ChangeAsync(AccessRowFormat.Of(token));
        return TokenText.Of(token.Id, secret);
    }
}
