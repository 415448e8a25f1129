namespace Kahuna.Server.Hosting.Options;

/// <summary>Whether callers have to say who they are.</summary>
internal enum AuthMode
{
    /// <summary>They need not: everybody who reaches the node may do everything.</summary>
    None,

    /// <summary>They have to, and may do what their roles allow.</summary>
    Required,
}
