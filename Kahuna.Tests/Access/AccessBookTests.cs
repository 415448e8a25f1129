using Kahuna.Server.Access;
using Kahuna.Server.State.Meta;

namespace Kahuna.Tests.Access;

/// <summary>Users, roles and tokens as the records have them.</summary>
public sealed class AccessBookTests
{
    private static readonly RoleRecord s_reader = new(
        "reader", [new Grant(Permissions.Read, GrantLevels.Both, GrantScope.Prefix, "a/"u8.ToArray())]);

    private static readonly RoleRecord s_writer = new(
        "writer", [new Grant(Permissions.Write, GrantLevels.Both, GrantScope.Prefix, "b/"u8.ToArray())]);

    [Fact]
    public void Records_are_found_and_listed_by_name()
    {
        TokenRecord token = new(Guid.Parse("0a000000000000000000000000000000"), 2, new byte[32], 1, 0, "");
        TokenRecord later = token with { Id = Guid.Parse("b0000000000000000000000000000000") };
        AccessBook book = Book(
            AccessRowFormat.Of(new UserRecord(2, "zoe")),
            AccessRowFormat.Of(new UserRecord(1, "adam")),
            AccessRowFormat.Of(new UserRecord(3, "Zoe")),
            AccessRowFormat.Of(s_writer),
            AccessRowFormat.Of(s_reader),
            AccessRowFormat.Of(later),
            AccessRowFormat.Of(token),
            AccessRowFormat.OfLastUserId(9));
        Assert.Equal(["Zoe", "adam", "zoe"], book.Users.Select(static user => user.Name));
        Assert.Equal(["admin", "reader", "writer"], book.Roles.Select(static role => role.Name));
        Assert.Equal([token.Id, later.Id], book.Tokens.Select(static one => one.Id));
        Assert.Equal(2u, book.FindUser("zoe")!.Id);
        Assert.Equal("Zoe", book.FindUser(3)!.Name);
        Assert.Null(book.FindUser("ZOE"));
        Assert.Null(book.FindUser(4));
        Assert.Equal("writer", book.FindRole("writer")!.Name);
        Assert.Null(book.FindRole("other"));
        Assert.Equal(2u, book.FindToken(token.Id)!.UserId);
        Assert.Null(book.FindToken(Guid.Empty));
        Assert.Equal((9u, 5ul), (book.LastUserId, book.Version));
    }

    [Fact]
    public void Rights_are_the_union_of_the_roles_and_one_object()
    {
        AccessBook book = Book(
            AccessRowFormat.Of(s_reader),
            AccessRowFormat.Of(s_writer),
            AccessRowFormat.Of(new UserRecord(1, "both") { Roles = ["reader", "writer", "gone"] }),
            AccessRowFormat.Of(new UserRecord(2, "nothing")),
            AccessRowFormat.Of(new UserRecord(3, "disabled") { Roles = ["admin"], IsDisabled = true }),
            AccessRowFormat.Of(new UserRecord(4, "root") { Roles = ["admin"] }));
        Rights both = book.RightsOf(book.FindUser(1)!);
        Assert.True(both.Covers(Permissions.Read, Durability.Persistent, "a/k"u8));
        Assert.True(both.Covers(Permissions.Write, Durability.Persistent, "b/k"u8));
        Assert.False(both.Covers(Permissions.Write, Durability.Persistent, "a/k"u8));
        Assert.Same(both, book.RightsOf(book.FindUser(1)!));
        Assert.False(book.RightsOf(book.FindUser(2)!).CoversSome(Permissions.Read));
        Assert.False(book.RightsOf(book.FindUser(3)!).IsAdmin);
        Assert.True(book.RightsOf(book.FindUser(4)!).IsAdmin);
        Assert.False(book.RightsOf(new UserRecord(5, "foreign") { Roles = ["admin"] }).IsAdmin);
    }

    [Fact]
    public void The_role_admin_is_built_in_whatever_is_stored()
    {
        AccessBook book = Book(AccessRowFormat.Of(new RoleRecord("admin", [])));
        Assert.Same(RoleRecord.Admin, book.FindRole("admin"));
        Assert.Same(RoleRecord.Admin, AccessBook.Empty.FindRole("admin"));
    }

    [Fact]
    public void A_certificate_is_one_user_or_nobody()
    {
        AccessBook book = Book(
            AccessRowFormat.Of(new UserRecord(1, "a") { CertificateNames = ["CN=a", "a.example"] }),
            AccessRowFormat.Of(new UserRecord(2, "b") { CertificateNames = ["CN=b", "shared"] }),
            AccessRowFormat.Of(new UserRecord(3, "c") { CertificateNames = ["shared"] }));
        Assert.Equal(1u, book.FindUserOfCertificate(["CN=x", "a.example", "CN=a"])!.Id);
        Assert.Null(book.FindUserOfCertificate(["CN=A"]));
        Assert.Null(book.FindUserOfCertificate([]));
        Assert.Null(book.FindUserOfCertificate(["CN=a", "CN=b"]));
        Assert.Null(book.FindUserOfCertificate(["shared"]));
        Assert.Null(book.FindUserOfCertificate(["CN=b", "shared"]));
    }

    [Fact]
    public void A_row_that_is_not_known_is_left_out()
    {
        AccessRow good = AccessRowFormat.Of(new UserRecord(1, "a"));
        AccessBook book = Book(
            good with { Name = [2, 0, 0, 0], Value = [9] },
            new AccessRow((byte)'?', [1], [1]),
            good);
        Assert.Equal("a", Assert.Single(book.Users).Name);
    }

    [Fact]
    public void An_administrator_counts_when_it_can_sign_in()
    {
        UserRecord user = new(1, "root") { Roles = ["admin"] };
        TokenRecord token = new(Guid.NewGuid(), 1, new byte[32], 1, 1_000, "");
        Assert.False(Book(AccessRowFormat.Of(user)).HasAdministrator(At(0)));
        Assert.True(Book(AccessRowFormat.Of(user), AccessRowFormat.Of(token)).HasAdministrator(At(999)));
        Assert.False(Book(AccessRowFormat.Of(user), AccessRowFormat.Of(token)).HasAdministrator(At(1_000)));
        Assert.True(Book(AccessRowFormat.Of(user with { CertificateNames = ["CN=root"] })).HasAdministrator(At(0)));
        UserRecord withPassword = user with { Password = new PasswordHash(1, [], [1]) };
        Assert.True(Book(AccessRowFormat.Of(withPassword)).HasAdministrator(At(0)));
        Assert.False(Book(AccessRowFormat.Of(withPassword with { IsDisabled = true })).HasAdministrator(At(0)));
        Assert.False(Book(AccessRowFormat.Of(withPassword with { Roles = ["reader"] }), AccessRowFormat.Of(s_reader))
            .HasAdministrator(At(0)));
    }

    [Fact]
    public void With_rows_the_book_is_as_if_they_were_recorded()
    {
        AccessRow user = AccessRowFormat.Of(new UserRecord(1, "a"));
        AccessBook book = Book(user).With(
            [AccessRowFormat.Of(new UserRecord(1, "b")), AccessRowFormat.Of(s_reader)]);
        Assert.Equal("b", Assert.Single(book.Users).Name);
        Assert.NotNull(book.FindRole("reader"));
        Assert.Empty(book.With([AccessRowFormat.Deleted(user)]).Users);
    }

    private static DateTimeOffset At(long ms) => DateTimeOffset.FromUnixTimeMilliseconds(ms);

    private static AccessBook Book(params AccessRow[] rows) => AccessBook.Read(new AccessRows(5, [], rows));
}
