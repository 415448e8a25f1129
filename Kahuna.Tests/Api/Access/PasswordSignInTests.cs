using System.Net;
using Grpc.Core;
using Kahuna.Server.Access;
using Kahuna.Server.Api.Access;
using Kahuna.Tests.Hosting;

namespace Kahuna.Tests.Api.Access;

/// <summary>Passwords: what is right, what it costs to be wrong, and what is remembered.</summary>
public sealed class PasswordSignInTests : IDisposable
{
    private static readonly IPAddress s_here = IPAddress.Parse("192.0.2.1");

    private readonly SteppedTime _time = new();
    private readonly KnownUsers _users;
    private readonly PasswordSignIn _passwords;

    public PasswordSignInTests()
    {
        _users = new KnownUsers(_time);
        _passwords = new PasswordSignIn(_users.State, new PasswordThrottle(_time));
        _users.Add(1, "ann");
    }

    public void Dispose() => _passwords.Dispose();

    [Fact]
    public async Task A_right_password_is_hashed_once()
    {
        for (int i = 0; i < 100; i++)
        {
            Assert.Equal(1u, (await CheckAsync("ann", KnownUsers.Password)).User?.Id);
        }

        Assert.Equal(1, _passwords.Hashed);
    }

    [Fact]
    public async Task Of_a_thousand_wrong_passwords_only_some_are_looked_at()
    {
        int lookedAt = 0;
        for (int i = 0; i < 1000; i++)
        {
            (UserRecord? user, SignInRefusal? refusal) = await CheckAsync("ann", $"wrong {i}");
            Assert.Null(user);
            if (refusal!.Code == StatusCode.Unauthenticated)
            {
                lookedAt++;
            }
            else
            {
                Assert.Equal(StatusCode.ResourceExhausted, refusal.Code);
                Assert.NotNull(refusal.RetryAfter);
            }

            _time.Now += TimeSpan.FromMilliseconds(10);
        }

        // Ten at once, and five in each of the ten seconds.
        Assert.InRange(lookedAt, 55, 61);
        Assert.Equal(lookedAt, _passwords.Hashed);
    }

    [Fact]
    public async Task A_password_that_was_right_is_never_throttled()
    {
        await CheckAsync("ann", KnownUsers.Password);
        for (int i = 0; i < 100; i++)
        {
            await CheckAsync("ann", $"wrong {i}");
        }

        Assert.Equal(1u, (await CheckAsync("ann", KnownUsers.Password)).User?.Id);
    }

    [Fact]
    public async Task Right_passwords_do_not_use_up_the_tries()
    {
        // Each change of the password makes the next sign-in a hash again.
        for (uint version = 2; version < 100; version++)
        {
            _users.Put(_users.Book.FindUser("ann")! with { PasswordVersion = version });
            Assert.Equal(1u, (await CheckAsync("ann", KnownUsers.Password)).User?.Id);
        }
    }

    [Fact]
    public async Task An_address_is_throttled_over_all_users()
    {
        int lookedAt = 0;
        for (int i = 0; i < 1000; i++)
        {
            (_, SignInRefusal? refusal) = await CheckAsync($"user {i}", "wrong password");
            lookedAt += refusal!.Code == StatusCode.Unauthenticated ? 1 : 0;
        }

        Assert.Equal(PasswordThrottle.OfAddress.Burst, lookedAt);
        (_, SignInRefusal? elsewhere) = await CheckAsync("ann", "wrong", IPAddress.Parse("192.0.2.2"));
        Assert.Equal(StatusCode.Unauthenticated, elsewhere!.Code);
    }

    [Fact]
    public async Task Addresses_of_one_IPv6_network_are_one()
    {
        for (int i = 0; i < PasswordThrottle.OfAddress.Burst; i++)
        {
            await CheckAsync($"user {i}", "wrong", IPAddress.Parse($"2001:db8::{i + 1:x}"));
        }

        (_, SignInRefusal? refusal) = await CheckAsync("other", "wrong", IPAddress.Parse("2001:db8::ffff:1"));
        Assert.Equal(StatusCode.ResourceExhausted, refusal!.Code);
    }

    [Fact]
    public async Task An_unknown_user_is_answered_like_a_wrong_password_after_a_hash()
    {
        (_, SignInRefusal? wrong) = await CheckAsync("ann", "wrong");
        (_, SignInRefusal? unknown) = await CheckAsync("nobody", "wrong");
        _users.Put(new UserRecord(2, "bob"));
        (_, SignInRefusal? without) = await CheckAsync("bob", "");

        Assert.Equal(wrong!.Sentence, unknown!.Sentence);
        Assert.Equal(wrong.Sentence, without!.Sentence);
        Assert.Equal(3, _passwords.Hashed);
    }

    [Fact]
    public async Task A_changed_password_ends_the_old_one()
    {
        await CheckAsync("ann", KnownUsers.Password);
        _users.Put(new UserRecord(1, "ann") { Password = KnownUsers.HashOf("another one"), PasswordVersion = 2 });

        Assert.Null((await CheckAsync("ann", KnownUsers.Password)).User);
        Assert.Equal(1u, (await CheckAsync("ann", "another one")).User?.Id);
    }

    [Fact]
    public async Task A_user_that_takes_over_a_name_does_not_take_over_its_password()
    {
        await CheckAsync("ann", KnownUsers.Password);
        _users.Put(_users.Book.FindUser("ann")! with { Name = "anna" });
        _users.Put(new UserRecord(2, "ann") { Password = KnownUsers.HashOf("another one"), PasswordVersion = 1 });

        Assert.Null((await CheckAsync("ann", KnownUsers.Password)).User);
        Assert.Equal(1u, (await CheckAsync("anna", KnownUsers.Password)).User?.Id);
    }

    [Fact]
    public async Task What_is_tracked_is_bounded()
    {
        PasswordThrottle throttle = new(_time);
        for (int i = 0; i < 3 * PasswordThrottle.TrackedMax; i++)
        {
            throttle.TryTake($"user {i}", new IPAddress(i));
        }

        Assert.Equal((PasswordThrottle.TrackedMax, PasswordThrottle.TrackedMax), throttle.Tracked);

        // Who comes when the tables are full shares what is left.
        Assert.False(throttle.TryTake("one more", IPAddress.Parse("203.0.113.1")));
        _time.Now += TimeSpan.FromSeconds(3);
        Assert.True(throttle.TryTake("one more", IPAddress.Parse("203.0.113.1")));
        Assert.Equal((1, 1), throttle.Tracked);
        await Task.CompletedTask;
    }

    [Fact]
    public async Task The_same_password_at_the_same_time_is_hashed_once()
    {
        Task<(UserRecord? User, SignInRefusal? Refusal)>[] all =
        [
            .. Enumerable.Range(0, 50).Select(_ => Task.Run(() => CheckAsync("ann", KnownUsers.Password).AsTask())),
        ];

        Assert.All(await Task.WhenAll(all), result => Assert.Equal(1u, result.User?.Id));
        Assert.InRange(_passwords.Hashed, 1, 10);
    }

    private ValueTask<(UserRecord? User, SignInRefusal? Refusal)> CheckAsync(
        string user, string password, IPAddress? from = null) =>
        _passwords.CheckAsync(user, password, from ?? s_here);
}
