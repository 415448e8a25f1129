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

    // Nodes
    Power,
    Kill,
    CrashInDisk,
    Pause,
    ClockDrift,
    ClockJump,
    Everybody,

    // Disk
    SlowSync,
    SyncError,
    FullDisk,
    FlippedBit,
    Wipe,
}
