namespace Kahuna.Tests.Cluster.Soak;

/// <summary>What can happen to the processes of a soak.</summary>
internal enum SoakFault
{
    /// <summary>kill -9 of one node, which is started again after a while.</summary>
    Kill,

    /// <summary>SIGSTOP of one node, and SIGCONT after a while.</summary>
    Pause,

    /// <summary>SIGTERM of one node, which ends by itself and is started again.</summary>
    Restart,

    /// <summary>kill -9 of all nodes at once, which are started again.</summary>
    KillAll,

    /// <summary>
    /// One node, or the link of two, is cut off from its peers for a while, in one direction or both. Clients still
    /// reach all nodes.
    /// </summary>
    Cut,
}
