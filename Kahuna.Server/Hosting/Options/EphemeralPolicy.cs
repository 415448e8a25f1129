namespace Kahuna.Server.Hosting.Options;

/// <summary>What happens at the memory limit of ephemeral keys.</summary>
internal enum EphemeralPolicy
{
    /// <summary>Refuses writes that may need more memory.</summary>
    Refuse,

    /// <summary>Evicts keys that were not used recently.</summary>
    Evict,
}
