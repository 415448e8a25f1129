namespace Kahuna.Tests.Simulation;

/// <summary>Classes of faults; each is off in half of the seeds. The names appear in reports.</summary>
internal enum FaultClass
{
    // Network, all the time
    Loss,
    Duplication,
    Reordering,
    SlowNetwork,

    // Network, for a while
    Partition,
    OneWayCut,
    Clog,
    Reset,
    LeaderCut,

    /// <summary>
    /// A leader is heard and hears nobody, for longer than a group may be without service, and nothing else happens
    /// meanwhile.
    /// </summary>
    DeafLeader,

    /// <summary>
    /// A leader hears the others late, by more than they would wait for it; and then they do not hear it any more.
    /// </summary>
    LateAnswers,

    // Nodes
    Power,
    Kill,

    /// <summary>An operator stops a node, which ends gracefully, and starts it again.</summary>
    Stop,
    CrashInDisk,
    Pause,
    ClockDrift,
    ClockJump,
    Everybody,

    /// <summary>As many nodes are down as the cluster survives.</summary>
    MinimalQuorum,

    /// <summary>A leader fails, and another node does when it has written the first entry of the next one.</summary>
    ElectionCrash,

    // Disk
    SlowSync,

    /// <summary>Operations of a disk do not end for a while, and do not fail.</summary>
    DiskHang,
    SyncError,
    FullDisk,
    FlippedBit,
    Wipe,

    /// <summary>
    /// A disk is lost, and the node fails again while it is being filled: a second snapshot follows the first.
    /// </summary>
    WipeTwice,

    /// <summary>
    /// The newest segments of the log, or all of them, are gone from the disk of a node that is down.
    /// </summary>
    LostLog,

    /// <summary>
    /// A cut-off leader's log is replaced by a state with another entry at its end, and the node ends before its log
    /// has begun anew.
    /// </summary>
    ReplacedTail,
}
