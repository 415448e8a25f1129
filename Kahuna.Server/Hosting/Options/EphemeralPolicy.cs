namespace Kahuna.Server.Hosting.Options;

/// <summary>What happens when ephemeral keys take up all the memory that they may.</summary>
internal enum EphemeralPolicy
{
    /// <summary>Writes that may take up more are refused.</summary>
    Refuse,

    /// <summary>Keys that were not used for long go.</summary>
    Evict,
}
