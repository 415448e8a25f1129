namespace Kahuna.Server.Api.Access;

/// <summary>Who may use a method or a path at all, before anything else is checked.</summary>
internal enum AccessPolicy
{
    /// <summary>Everybody: what a load balancer and a generator of clients need, without any name or value.</summary>
    Open,

    /// <summary>Everybody who has signed in. What the caller may do is checked for each command.</summary>
    SignedIn,

    /// <summary>Administrators: the permission <see cref="Permissions.Admin"/>.</summary>
    Admin,

    /// <summary>Administrators, and callers that show the token for metrics.</summary>
    Metrics,

    /// <summary>Administrators, and other nodes that pass on what an administrator asked them.</summary>
    AdminOrNode,

    /// <summary>A caller that proves the cluster's secret, whether authentication is on or off.</summary>
    Node,
}
