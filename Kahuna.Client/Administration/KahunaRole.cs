namespace Kahuna.Client.Administration;

/// <summary>A role: what its users may do. Immutable.</summary>
/// <param name="Name">1 to 128 characters, no control characters; unique.</param>
/// <param name="Grants">What it allows. Nothing else is allowed.</param>
public sealed record KahunaRole(string Name, IReadOnlyList<RoleGrant> Grants);

/// <summary>Permissions on some names. Immutable.</summary>
public sealed record RoleGrant
{
    /// <summary>What is allowed.</summary>
    public required Permissions Permissions { get; init; }

    /// <summary>What <see cref="Name"/> stands for.</summary>
    public GrantScope Scope { get; init; }

    /// <summary>The prefix, key or bucket; the empty prefix stands for all names.</summary>
    public string Name { get; init; } = "";

    /// <summary>Of which durability the names are; null: of both.</summary>
    public Durability? Level { get; init; }

    /// <summary>Users, roles and tokens, and the state of nodes.</summary>
    public static RoleGrant Admin { get; } = new() { Permissions = Permissions.Admin };

    /// <summary>Permissions on all names that begin with a prefix.</summary>
    /// <param name="prefix">The prefix; empty for all names.</param>
    /// <param name="permissions">What is allowed.</param>
    /// <param name="level">Of which durability; null for both.</param>
    public static RoleGrant OnPrefix(string prefix, Permissions permissions, Durability? level = null) =>
        On(GrantScope.Prefix, prefix, permissions, level);

    /// <summary>Permissions on one name.</summary>
    /// <param name="key">The key, lock or sequence.</param>
    /// <param name="permissions">What is allowed.</param>
    /// <param name="level">Of which durability; null for both.</param>
    public static RoleGrant OnKey(string key, Permissions permissions, Durability? level = null) =>
        On(GrantScope.Key, key, permissions, level);

    /// <summary>Permissions on the names of a bucket and of the buckets inside it.</summary>
    /// <param name="bucket">The bucket, without a '/' at its end.</param>
    /// <param name="permissions">What is allowed.</param>
    /// <param name="level">Of which durability; null for both.</param>
    public static RoleGrant OnBucket(string bucket, Permissions permissions, Durability? level = null) =>
        On(GrantScope.Bucket, bucket, permissions, level);

    private static RoleGrant On(GrantScope scope, string name, Permissions permissions, Durability? level)
    {
        ArgumentNullException.ThrowIfNull(name);
        return new RoleGrant { Permissions = permissions, Scope = scope, Name = name, Level = level };
    }
}

/// <summary>What the name of a grant stands for.</summary>
public enum GrantScope
{
    /// <summary>All names that begin with it.</summary>
    Prefix = 0,

    /// <summary>This name alone.</summary>
    Key = 1,

    /// <summary>
    /// The names of the bucket and of the buckets inside it: all that begin with it and a '/'; and itself, if it has
    /// no '/'.
    /// </summary>
    Bucket = 2,
}
