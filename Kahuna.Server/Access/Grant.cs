using Kahuna.Wire.Commands;

namespace Kahuna.Server.Access;

/// <summary>What a grant's name stands for. Values are stored.</summary>
internal enum GrantScope : byte
{
    /// <summary>Names that begin with it; the empty one covers all.</summary>
    Prefix = 0,

    /// <summary>This name alone.</summary>
    Key = 1,

    /// <summary>
    /// The names of a bucket and of the buckets inside it: all that begin with it and a '/', and, if it has no '/',
    /// itself.
    /// </summary>
    Bucket = 2,
}

/// <summary>Which durabilities a grant is for. Values are stored.</summary>
[Flags]
internal enum GrantLevels : byte
{
    /// <summary>Persistent names.</summary>
    Persistent = 1,

    /// <summary>Ephemeral names.</summary>
    Ephemeral = 2,

    /// <summary>Names of both.</summary>
    Both = Persistent | Ephemeral,
}

/// <summary>Permissions on some names. Immutable.</summary>
/// <param name="Permissions">What is allowed.</param>
/// <param name="Levels">On names of which durabilities.</param>
/// <param name="Scope">What the name stands for.</param>
/// <param name="Name">The name; empty only with <see cref="GrantScope.Prefix"/>.</param>
internal sealed record Grant(Permissions Permissions, GrantLevels Levels, GrantScope Scope, byte[] Name)
{
    /// <summary>Everything on all names.</summary>
    public static Grant Everything { get; } =
        new(Permissions.Data | Permissions.Admin, GrantLevels.Both, GrantScope.Prefix, []);

    /// <summary>It covers all names of both durabilities.</summary>
    public bool CoversAll => Scope == GrantScope.Prefix && Name.Length == 0 && Levels == GrantLevels.Both;

    /// <summary>The names as ranges; none when the grant is malformed.</summary>
    public IReadOnlyList<KeyRange> Ranges() => Scope switch
    {
        GrantScope.Prefix => [KeyRange.Of(Name, null, null)],
        _ when Name.Length == 0 => [],
        GrantScope.Key => [new KeyRange(Name, KeyRange.Behind(Name))],
        GrantScope.Bucket when Name.Contains((byte)'/') => [KeyRange.Of([.. Name, (byte)'/'], null, null)],
        GrantScope.Bucket =>
            [new KeyRange(Name, KeyRange.Behind(Name)), KeyRange.Of([.. Name, (byte)'/'], null, null)],
        _ => [],
    };
}
