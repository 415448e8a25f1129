namespace Kahuna.Server.Partitions.Ports;

/// <summary>The loops, as the checkpoint service reaches them. Any thread.</summary>
internal interface ICheckpointLoops
{
    /// <summary>Hands a call to the loop that owns the group. False when the loop takes nothing further.</summary>
    bool Post(CheckpointRequest call);
}
