using Kahuna.Server.Access;
using static Kahuna.Tests.Access.AccessAnswers;

namespace Kahuna.Tests.Access;

/// <summary>What may be changed of users, roles and tokens, also when others change them at the same time.</summary>
public sealed class AccessChangesTests
{
    private static readonly UserChange s_disabled = new() { IsDisabled = true };
    private static readonly Grant s_read = new(Permissions.Read, GrantLevels.Both, GrantScope.Prefix, [0x61]);

    private readonly MemoryLedger _ledger = new();
    private readonly AccessChanges _changes;

    public AccessChangesTests() => _changes = new AccessChanges(_ledger, TimeProvider.System);

    private AccessBook Book => _ledger.Book;

    [Fact]
    public async Task Users_have_numbers_that_no_other_user_ever_has()
    {
        UserRecord first = Good(await Create("a"));
        UserRecord second = Good(await Create("b"));
        Good(await _changes.DeleteUserAsync("b", default));
        UserRecord third = Good(await Create("b"));
        Assert.Equal((1u, 2u, 3u), (first.Id, second.Id, third.Id));
        Assert.Null(Book.FindUser(2));
    }

    [Fact]
    public async Task A_user_has_what_was_asked_for()
    {
        Good(await _changes.PutRoleAsync(new RoleRecord("reader", [s_read]), default));
        UserRecord made = Good(await _changes.CreateUserAsync(
            new UserChange
            {
                Name = "a",
                Roles = ["reader", "admin", "reader"],
                CertificateNames = ["CN=a", "CN=a"],
                Password = "correct horse",
            },
            default));
        UserRecord user = Book.FindUser("a")!;
        Assert.Equal(made.Id, user.Id);
        Assert.Equal(["reader", "admin"], user.Roles);
        Assert.Equal(["CN=a"], user.CertificateNames);
        Assert.True(Passwords.Verify(user.Password!, "correct horse"));
        Assert.False(user.IsDisabled);
    }

    [Fact]
    public async Task A_name_is_taken_once()
    {
        Good(await Create("a"));
        Good(await Create("A"));
        AssertRefused(AccessRefusal.AlreadyExists, await Create("a"));
        Good(await Create("b"));
        AssertRefused(AccessRefusal.AlreadyExists, await Update("b", new UserChange { Name = "a" }));
        Good(await Update("a", new UserChange { Name = "a" }));
    }

    [Fact]
    public async Task A_certificate_belongs_to_one_user()
    {
        Good(await _changes.CreateUserAsync(new UserChange { Name = "a", CertificateNames = ["CN=a"] }, default));
        AssertRefused(
            AccessRefusal.AlreadyExists,
            await _changes.CreateUserAsync(new UserChange { Name = "b", CertificateNames = ["x", "CN=a"] }, default));
        Good(await Update("a", new UserChange { CertificateNames = ["x", "CN=a"] }));
    }

    [Fact]
    public async Task A_renamed_user_keeps_its_number_its_roles_and_its_tokens()
    {
        UserRecord user = Good(await _changes.CreateUserAsync(
            new UserChange { Name = "a", Roles = ["admin"] }, default));
        NewToken token = Good(await _changes.CreateTokenAsync("a", 0, "", default));
        UserRecord renamed = Good(await Update("a", new UserChange { Name = "b" }));
        Assert.Equal((user.Id, "b", 0u), (renamed.Id, renamed.Name, renamed.PasswordVersion));
        Assert.Equal(["admin"], renamed.Roles);
        Assert.Null(Book.FindUser("a"));
        Assert.Equal(user.Id, Book.FindToken(token.Token.Id)!.UserId);
    }

    [Fact]
    public async Task The_version_of_the_password_grows_with_passwords_and_when_the_user_is_disabled()
    {
        Good(await Create("a"));
        Assert.Equal(1u, Good(await Update("a", new UserChange { Password = "correct horse" })).PasswordVersion);
        Assert.Equal(2u, Good(await Update("a", s_disabled)).PasswordVersion);
        Assert.Equal(2u, Good(await Update("a", s_disabled)).PasswordVersion);
        Assert.Equal(2u, Good(await Update("a", new UserChange { IsDisabled = false })).PasswordVersion);
        UserRecord without = Good(await Update("a", new UserChange { Password = "" }));
        Assert.Equal(3u, without.PasswordVersion);
        Assert.Null(without.Password);
    }

    [Theory]
    [InlineData("")]
    [InlineData("a\n")]
    [InlineData("a\u0007b")]
    [InlineData("a\u202eb")]
    [InlineData("a\u2028b")]
    [InlineData("\ud800")]
    [InlineData(" a")]
    [InlineData("a ")]
    public async Task A_name_is_one_that_can_be_shown(string name)
    {
        AssertRefused(AccessRefusal.InvalidArgument, await Create(name));
        AssertRefused(
            AccessRefusal.InvalidArgument, await _changes.PutRoleAsync(new RoleRecord(name, [s_read]), default));
        Good(await Create("good"));
        AssertRefused(AccessRefusal.InvalidArgument, await Update("good", new UserChange { Name = name }));
        AssertRefused(
            AccessRefusal.InvalidArgument, await Update("good", new UserChange { CertificateNames = [name] }));
    }

    [Fact]
    public async Task Lengths_and_numbers_are_limited()
    {
        Good(await Create(new string('a', 128)));
        AssertRefused(AccessRefusal.InvalidArgument, await Create(new string('a', 129)));
        AssertRefused(AccessRefusal.InvalidArgument, await Put(new string('é', 129), [s_read]));
        AssertRefused(AccessRefusal.InvalidArgument, await Put(new string('€', 128), [s_read]));
        Good(await Put(new string('é', 128), [s_read]));
        Good(await Put("many", [.. Enumerable.Repeat(s_read, 256)]));
        AssertRefused(AccessRefusal.InvalidArgument, await Put("more", [.. Enumerable.Repeat(s_read, 257)]));
        AssertRefused(
            AccessRefusal.InvalidArgument,
            await Put("wide", [.. Enumerable.Repeat(s_read with { Name = new byte[1024] }, 64)]));
        AssertRefused(AccessRefusal.InvalidArgument, await Put("long", [s_read with { Name = new byte[1025] }]));
        Good(await Create("a"));
        string[] names = [.. Enumerable.Range(0, 17).Select(static i => $"CN={i}")];
        Good(await Update("a", new UserChange { CertificateNames = names[..16] }));
        AssertRefused(AccessRefusal.InvalidArgument, await Update("a", new UserChange { CertificateNames = names }));
        AssertRefused(
            AccessRefusal.InvalidArgument,
            await Update("a", new UserChange { Roles = [.. Enumerable.Range(0, 65).Select(static i => $"r{i}")] }));
    }

    [Fact]
    public async Task There_are_only_so_many_users_roles_and_tokens()
    {
        _ledger.Put([.. Enumerable.Range(1, AccessRules.UsersMax).Select(
            static id => AccessRowFormat.Of(new UserRecord((uint)id, $"u{id}")))]);
        AssertRefused(AccessRefusal.ResourceExhausted, await Create("one more"));
        _ledger.Put([.. Enumerable.Range(1, AccessRules.RolesMax).Select(
            static id => AccessRowFormat.Of(new RoleRecord($"r{id}", [])))]);
        AssertRefused(AccessRefusal.ResourceExhausted, await Put("one more", [s_read]));
        Good(await Put("r1", [s_read]));
    }

    [Theory]
    [InlineData("seven77")]
    [InlineData("a")]
    public async Task A_password_is_long_enough(string password) => AssertRefused(
        AccessRefusal.InvalidArgument,
        await _changes.CreateUserAsync(new UserChange { Name = "a", Password = password }, default));

    [Fact]
    public async Task A_refused_password_is_not_shown()
    {
        AccessAnswer<UserRecord> answer = await _changes.CreateUserAsync(
            new UserChange { Name = "a", Password = new string('s', 1_025) }, default);
        AssertRefused(AccessRefusal.InvalidArgument, answer);
        Assert.DoesNotContain("sss", answer.Problem!.Sentence);
    }

    [Fact]
    public async Task A_name_with_a_colon_has_no_password()
    {
        Good(await Create("system:a"));
        AssertRefused(
            AccessRefusal.InvalidArgument, await Update("system:a", new UserChange { Password = "correct horse" }));
    }

    [Fact]
    public async Task Roles_of_a_user_exist()
    {
        AssertRefused(
            AccessRefusal.NotFound,
            await _changes.CreateUserAsync(new UserChange { Name = "a", Roles = ["gone"] }, default));
        Good(await Create("a"));
        AssertRefused(AccessRefusal.NotFound, await Update("a", new UserChange { Roles = ["admin", "gone"] }));
    }

    [Fact]
    public async Task What_is_not_there_is_not_found()
    {
        AssertRefused(AccessRefusal.NotFound, await Update("gone", s_disabled));
        AssertRefused(AccessRefusal.NotFound, await _changes.DeleteUserAsync("gone", default));
        AssertRefused(AccessRefusal.NotFound, await _changes.DeleteRoleAsync("gone", default));
        AssertRefused(AccessRefusal.NotFound, await _changes.CreateTokenAsync("gone", 0, "", default));
        AssertRefused(AccessRefusal.NotFound, await _changes.RevokeTokenAsync(Guid.Empty, default));
        AssertRefused(AccessRefusal.InvalidArgument, await Update("gone", new UserChange()));
    }

    [Fact]
    public async Task A_role_in_use_and_the_built_in_one_stay()
    {
        Good(await Put("reader", [s_read]));
        Good(await _changes.CreateUserAsync(new UserChange { Name = "a", Roles = ["reader"] }, default));
        AssertRefused(AccessRefusal.FailedPrecondition, await _changes.DeleteRoleAsync("reader", default));
        Good(await Update("a", new UserChange { Roles = [] }));
        Good(await _changes.DeleteRoleAsync("reader", default));
        Assert.Null(Book.FindRole("reader"));
        AssertRefused(AccessRefusal.FailedPrecondition, await _changes.DeleteRoleAsync("admin", default));
        AssertRefused(AccessRefusal.FailedPrecondition, await Put("admin", [s_read]));
    }

    [Fact]
    public async Task A_grant_says_what_it_allows_on_what()
    {
        AssertRefused(AccessRefusal.InvalidArgument, await Put("r", [s_read with { Permissions = 0 }]));
        AssertRefused(
            AccessRefusal.InvalidArgument, await Put("r", [s_read with { Permissions = (Permissions)0x100 }]));
        AssertRefused(AccessRefusal.InvalidArgument, await Put("r", [s_read with { Permissions = Permissions.Admin }]));
        AssertRefused(
            AccessRefusal.InvalidArgument, await Put("r", [s_read with { Scope = GrantScope.Key, Name = [] }]));
        AssertRefused(
            AccessRefusal.InvalidArgument, await Put("r", [s_read with { Scope = GrantScope.Bucket, Name = [] }]));
        Good(await Put("r", [s_read with { Name = [] }]));
        Good(await Put("r", [Grant.Everything with { Permissions = Permissions.Admin }]));
    }

    [Fact]
    public async Task The_last_administrator_stays()
    {
        Good(await Put("chief", [Grant.Everything with { Permissions = Permissions.Admin }]));
        Good(await _changes.CreateUserAsync(
            new UserChange { Name = "root", Roles = ["chief"], CertificateNames = ["CN=root"] }, default));
        AccessAnswer<UserRecord>[] refused =
        [
            await _changes.DeleteUserAsync("root", default),
            await Update("root", s_disabled),
            await Update("root", new UserChange { Roles = [] }),
            await Update("root", new UserChange { CertificateNames = [] }),
        ];
        Assert.All(refused, static answer => AssertRefused(AccessRefusal.FailedPrecondition, answer));
        AssertRefused(AccessRefusal.FailedPrecondition, await Put("chief", [s_read]));
        Assert.True(Book.RightsOf(Book.FindUser("root")!).IsAdmin);

        // One that cannot sign in does not count.
        Good(await _changes.CreateUserAsync(new UserChange { Name = "second", Roles = ["admin"] }, default));
        AssertRefused(AccessRefusal.FailedPrecondition, await _changes.DeleteUserAsync("root", default));
        NewToken token = Good(await _changes.CreateTokenAsync("second", 60_000, "", default));
        Good(await _changes.DeleteUserAsync("root", default));
        AssertRefused(AccessRefusal.FailedPrecondition, await _changes.RevokeTokenAsync(token.Token.Id, default));
    }

    [Fact]
    public async Task Two_administrators_who_delete_each_other_leave_one()
    {
        _ledger.PutAdministrator(1, "a");
        _ledger.PutAdministrator(2, "b");
        _ledger.Before = asked =>
        {
            if (asked == 1)
            {
                _ledger.Put(AccessRowFormat.Deleted(AccessRowFormat.Of(Book.FindUser("b")!)));
            }
        };
        AssertRefused(AccessRefusal.FailedPrecondition, await _changes.DeleteUserAsync("a", default));
        Assert.Equal("a", Assert.Single(Book.Users).Name);
    }

    [Fact]
    public async Task Who_is_no_administrator_any_more_changes_nothing()
    {
        _ledger.PutAdministrator(1, "other");
        UserRecord user = _ledger.PutAdministrator(2, "a");
        AccessChanges mine = _changes.By(_ledger.CallerOf(user));
        Good(await mine.CreateUserAsync(new UserChange { Name = "before" }, default));

        // The right goes while the change is under way.
        _ledger.Before = asked =>
        {
            if (asked == 2)
            {
                _ledger.Put(AccessRowFormat.Of(user with { Roles = [] }));
            }
        };
        AssertRefused(
            AccessRefusal.PermissionDenied,
            await mine.CreateUserAsync(new UserChange { Name = "after" }, default));
        Assert.Null(Book.FindUser("after"));
        AssertRefused(
            AccessRefusal.PermissionDenied,
            await _changes.By(Caller.Anybody).CreateUserAsync(new UserChange { Name = "after" }, default));
    }

    [Fact]
    public async Task A_change_that_comes_second_is_planned_anew()
    {
        _ledger.Before = asked =>
        {
            if (asked <= 4)
            {
                _ledger.Put(AccessRowFormat.Of(new UserRecord((uint)asked, $"other{asked}")));
            }
        };
        UserRecord user = Good(await Create("a"));
        Assert.Equal((5u, 5), (user.Id, _ledger.Asked));
        Assert.Equal(5, Book.Users.Count);
    }

    [Fact]
    public async Task A_name_that_another_took_meanwhile_is_refused()
    {
        _ledger.Before = asked =>
        {
            if (asked == 1)
            {
                _ledger.Put(AccessRowFormat.Of(new UserRecord(1, "a")));
            }
        };
        AssertRefused(AccessRefusal.AlreadyExists, await Create("a"));
    }

    [Fact]
    public async Task What_was_made_at_another_node_meanwhile_is_not_refused()
    {
        _ledger.Before = asked =>
        {
            if (asked == 1)
            {
                _ledger.Put(AccessRowFormat.Of(new RoleRecord("reader", [s_read])));
            }
        };
        UserRecord user = Good(await _changes.CreateUserAsync(
            new UserChange { Name = "a", Roles = ["reader"], Password = "correct horse" }, default));
        Assert.Equal(["reader"], user.Roles);
    }

    [Fact]
    public async Task A_refusal_changes_nothing_and_needs_the_newest_records()
    {
        Good(await Create("a"));
        AssertRefused(AccessRefusal.AlreadyExists, await Create("a"));
        Assert.Equal(1u, Book.LastUserId);
        Assert.Single(Book.Users);
        _ledger.End = AccessCommit.Unknown;
        AssertRefused(AccessRefusal.Conflict, await Create("a"));
    }

    [Fact]
    public async Task Records_that_would_be_too_large_are_told()
    {
        _ledger.End = AccessCommit.Full;
        AssertRefused(AccessRefusal.ResourceExhausted, await Create("a"));
        Assert.Equal(1, _ledger.Asked);
    }

    [Fact]
    public async Task A_change_gives_up_after_five_conflicts()
    {
        _ledger.End = AccessCommit.Conflict;
        AssertRefused(AccessRefusal.Conflict, await Create("a"));
        Assert.Equal(AccessChanges.TriesMax, _ledger.Asked);
    }

    [Fact]
    public async Task No_answer_is_not_tried_again()
    {
        _ledger.End = AccessCommit.Unknown;
        AssertRefused(AccessRefusal.Unknown, await Create("a"));
        Assert.Equal(1, _ledger.Asked);
    }

    [Fact]
    public async Task Many_changes_at_once_keep_names_and_numbers_apart()
    {
        AccessAnswer<UserRecord>[] answers = await Task.WhenAll(Enumerable.Range(0, 24).Select(
            i => Task.Run(() => Create($"u{i % 12}"))));
        Assert.All(answers, static answer => Assert.True(
            answer.Problem is null or { Reason: AccessRefusal.AlreadyExists or AccessRefusal.Conflict }));
        int made = answers.Count(static answer => answer.Problem is null);
        Assert.Equal(made, Book.Users.Count);
        Assert.Equal(made, Book.Users.Select(static user => user.Name).Distinct().Count());
        Assert.Equal((uint)made, Book.LastUserId);
    }

    private Task<AccessAnswer<UserRecord>> Create(string name) =>
        _changes.CreateUserAsync(new UserChange { Name = name }, default);

    private Task<AccessAnswer<UserRecord>> Update(string name, UserChange change) =>
        _changes.UpdateUserAsync(name, change, default);

    private Task<AccessAnswer<RoleRecord>> Put(string name, IReadOnlyList<Grant> grants) =>
        _changes.PutRoleAsync(new RoleRecord(name, grants), default);
}
