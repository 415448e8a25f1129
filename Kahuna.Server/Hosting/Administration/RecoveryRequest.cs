using System.Security.Cryptography;
using System.Text;
using System.Text.Json;
using Kahuna.Server.Access;
using Kahuna.Server.Hosting.Options;

namespace Kahuna.Server.Hosting.Administration;

/// <summary>
/// A request to make a user an administrator with a new password, as <c>kahuna-server recover-admin</c> leaves it in
/// data directories. It has a hash of the password, which is made once, so that the requests of all nodes are the same.
/// Immutable.
/// </summary>
/// <param name="ClusterId">The cluster that it is for.</param>
/// <param name="Id">Random; tells it apart from every other one.</param>
/// <param name="User">The user's name.</param>
/// <param name="Password">The new password.</param>
/// <param name="MadeMs">When it was made; milliseconds since 1970, UTC.</param>
internal sealed record RecoveryRequest(string ClusterId, Guid Id, string User, PasswordHash Password, long MadeMs)
{
    /// <summary>The file's name in a data directory.</summary>
    public const string FileName = "admin-recovery.json";

    /// <summary>SHA-256.</summary>
    public const int FingerprintBytes = 32;

    /// <summary>
    /// How long it counts, and a vote for it: enough to restart the nodes one after the other. A file that was left
    /// behind is worth nothing afterwards.
    /// </summary>
    public static readonly TimeSpan Lifetime = TimeSpan.FromHours(1);

    private const int Format = 1;
    private const int SaltBytes = 16;
    private const int HashBytes = 32;

    /// <summary>A hash of more rounds would keep a node from checking passwords.</summary>
    private const int RoundsMax = 10_000_000;

    /// <summary>How far clocks of nodes may be apart.</summary>
    private static readonly TimeSpan s_ahead = TimeSpan.FromMinutes(5);

    /// <summary>The same for the same request, whatever its file looks like.</summary>
    public byte[] Fingerprint => SHA256.HashData(Encoding.UTF8.GetBytes(ToText()));

    /// <summary>A time is within the lifetime, by this clock.</summary>
    public static bool IsRecent(long atMs, DateTimeOffset now)
    {
        double ageMs = (double)now.ToUnixTimeMilliseconds() - atMs;
        return ageMs < Lifetime.TotalMilliseconds && ageMs > -s_ahead.TotalMilliseconds;
    }

    /// <summary>A new one.</summary>
    /// <param name="clusterId">The cluster.</param>
    /// <param name="user">The name, to which <see cref="FirstAdministrator.Objection"/> has none.</param>
    /// <param name="password">The password, likewise.</param>
    /// <param name="now">The present time.</param>
    public static RecoveryRequest New(string clusterId, string user, string password, DateTimeOffset now) => new(
        clusterId,
        new Guid(RandomNumberGenerator.GetBytes(SaltBytes)),
        user,
        Passwords.Hash(password),
        now.ToUnixTimeMilliseconds());

    /// <summary>Reads the file of a data directory; null: there is none.</summary>
    /// <param name="directory">The data directory.</param>
    /// <param name="clusterId">The cluster that it must be for.</param>
    /// <exception cref="InvalidDataException">It is unusable, or of another cluster; the message is one
    /// line.</exception>
    public static RecoveryRequest? Find(string directory, string clusterId)
    {
        string path = Path.Combine(directory, FileName);
        return File.Exists(path) ? Read(path, clusterId) : null;
    }

    /// <summary>Reads a file.</summary>
    /// <param name="path">Of the file.</param>
    /// <param name="clusterId">The cluster that it must be for.</param>
    /// <exception cref="InvalidDataException">It is unusable, or of another cluster; the message is one
    /// line.</exception>
    public static RecoveryRequest Read(string path, string clusterId)
    {
        RecoveryRequest? request;
        try
        {
            request = Parse(BootstrapFile.ReadSecret(path, "request"));
        }
        catch (Exception error) when (
            error is JsonException or KeyNotFoundException or FormatException or InvalidOperationException)
        {
            request = null;
        }

        return request is null
                ? throw new InvalidDataException(
                    $"{path} is no request of this version to recover an administrator; make one with: kahuna-server "
                        + $"recover-admin")
            : request.ClusterId != clusterId
                ? throw new InvalidDataException(
                    $"The request {path} is for the cluster '{OneLine.Of(request.ClusterId)}', not for "
                        + $"'{clusterId}'.")
            : request;
    }

    /// <summary>Leaves it in a data directory, durably; only the owner may read it.</summary>
    /// <exception cref="IOException">It could not be written.</exception>
    public void Write(string directory) =>
        StableFile.Write(Path.Combine(directory, FileName), Encoding.UTF8.GetBytes(ToText()), secret: true);

    /// <summary>Does not show the hash.</summary>
    public override string ToString() => $"{User} ({Id:N})";

    private string ToText() => JsonSerializer.Serialize(new
    {
        format = Format,
        clusterId = ClusterId,
        id = Id.ToString("N"),
        user = User,
        rounds = Password.Iterations,
        salt = Convert.ToHexString(Password.Salt),
        hash = Convert.ToHexString(Password.Hash),
        madeMs = MadeMs,
    }) + "\n";

    private static RecoveryRequest? Parse(string text)
    {
        using JsonDocument document = JsonDocument.Parse(text);
        JsonElement root = document.RootElement;
        if (root.GetProperty("format").GetInt32() != Format)
        {
            return null;
        }

        PasswordHash password = new(
            root.GetProperty("rounds").GetInt32(),
            Convert.FromHexString(TextOf(root, "salt")),
            Convert.FromHexString(TextOf(root, "hash")));
        RecoveryRequest request = new(
            TextOf(root, "clusterId"),
            Guid.ParseExact(TextOf(root, "id"), "N"),
            TextOf(root, "user"),
            password,
            root.GetProperty("madeMs").GetInt64());
        return password.Iterations is >= Passwords.Iterations and <= RoundsMax
            && password.Salt.Length == SaltBytes
            && password.Hash.Length == HashBytes
            && FirstAdministrator.ObjectionToName(request.User) is null
                ? request
                : null;
    }

    private static string TextOf(JsonElement root, string name) =>
        root.GetProperty(name).GetString() ?? throw new FormatException($"{name} is null.");
}
