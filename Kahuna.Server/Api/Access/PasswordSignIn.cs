using System.Net;
using System.Security.Cryptography;
using System.Text;
using Grpc.Core;
using Kahuna.Server.Access;

namespace Kahuna.Server.Api.Access;

/// <summary>
/// Checks users' passwords. An unknown user costs the same hash as a known one and gets the same answer as a wrong
/// password. While nothing changes, a user's right password is hashed once. Owned by the node; any thread.
/// </summary>
/// <param name="access">The users.</param>
/// <param name="throttle">How often passwords may be tried.</param>
internal sealed class PasswordSignIn(AccessState access, PasswordThrottle throttle) : IDisposable
{
    /// <summary>Right passwords that are remembered, as keyed hashes: 0.5 MB.</summary>
    public const int RememberedMax = 4096;

    private const string Wrong = "The user name or the password is wrong.";

    private const string TooMany =
        "Passwords of this user, or from this address, were tried too often; this one was not looked at. Try again in "
            + "a second.";

    private static readonly TimeSpan s_retryAfter = TimeSpan.FromSeconds(1);

    /// <summary>Compared with for users that do not exist or have no password; no password has this hash.</summary>
    private static readonly PasswordHash s_decoy = new(
        Passwords.Iterations,
        RandomNumberGenerator.GetBytes(Digest.Bytes / 2),
        RandomNumberGenerator.GetBytes(Digest.Bytes));

    private readonly byte[] _key = RandomNumberGenerator.GetBytes(Digest.Bytes);
    private readonly RecentCache<Digest, RightPassword> _remembered = new(RememberedMax);
    private readonly Dictionary<(Digest Password, RightPassword User), Task<Answer>> _running = [];
    private readonly Lock _lock = new();
    private readonly PasswordWorkers _workers = new();
    private int _hashed;

    private enum Answer
    {
        Right,
        Wrong,
        NotLookedAt,
    }

    /// <summary>Hashes that were computed.</summary>
    public int Hashed => Volatile.Read(ref _hashed);

    /// <summary>Finds the user with this name and password.</summary>
    /// <param name="user">The name.</param>
    /// <param name="password">The password.</param>
    /// <param name="address">Where from.</param>
    /// <returns>The user, or why none.</returns>
    public async ValueTask<(UserRecord? User, SignInRefusal? Refusal)> CheckAsync(
        string user, string password, IPAddress address)
    {
        UserRecord? record = access.Book.FindUser(user);
        Digest digest = DigestOf(user, password);
        RightPassword expected = new(record?.Id ?? 0, record?.PasswordVersion ?? 0);
        if (record?.Password is null
            || !_remembered.TryGet(digest, out RightPassword remembered)
            || remembered != expected)
        {
            Answer answer = await HashOnceAsync(record, user, password, address, (digest, expected))
                .ConfigureAwait(false);
            if (answer != Answer.Right)
            {
                return (null, answer == Answer.Wrong
                    ? SignInRefusal.Unauthenticated(Wrong, user)
                    : new SignInRefusal(StatusCode.ResourceExhausted, TooMany)
                    {
                        RetryAfter = s_retryAfter,
                        ClaimedName = user,
                    });
            }
        }

        return (record, null);
    }

    public void Dispose() => _workers.Dispose();

    /// <summary>Hashes the password, or waits for the hash that is being computed for the same one.</summary>
    private Task<Answer> HashOnceAsync(
        UserRecord? record, string user, string password, IPAddress address, (Digest, RightPassword) key)
    {
        TaskCompletionSource<Answer> ended = new(TaskCreationOptions.RunContinuationsAsynchronously);
        lock (_lock)
        {
            if (_running.TryGetValue(key, out Task<Answer>? running))
            {
                return running;
            }

            if (!throttle.TryTake(user, address))
            {
                return Task.FromResult(Answer.NotLookedAt);
            }

            _running.Add(key, ended.Task);
        }

        if (!_workers.TryRun(() => End(key, ended, Hash(record, user, password, address, key))))
        {
            End(key, ended, Answer.NotLookedAt);
        }

        return ended.Task;
    }

    private Answer Hash(
        UserRecord? record, string user, string password, IPAddress address, (Digest Password, RightPassword User) key)
    {
        Interlocked.Increment(ref _hashed);
        PasswordHash? own = record?.Password;
        bool isRight = Passwords.Verify(own ?? s_decoy, password) && own is not null;
        if (isRight)
        {
            _remembered.Set(key.Password, key.User);
            throttle.GiveBack(user, address);
        }

        return isRight ? Answer.Right : Answer.Wrong;
    }

    private void End((Digest, RightPassword) key, TaskCompletionSource<Answer> ended, Answer answer)
    {
        lock (_lock)
        {
            _running.Remove(key);
        }

        ended.SetResult(answer);
    }

    private Digest DigestOf(string user, string password)
    {
        // A name has no control characters, so the zero byte ends it.
        byte[] text = Encoding.UTF8.GetBytes(user + '\0' + password);
        Span<byte> hash = stackalloc byte[Digest.Bytes];
        HMACSHA256.HashData(_key, text, hash);
        CryptographicOperations.ZeroMemory(text);
        return Digest.From(hash);
    }

    /// <summary>Whose password it is, and which of its passwords.</summary>
    private readonly record struct RightPassword(uint UserId, uint PasswordVersion);
}
