namespace Kahuna.Server.Partitions.States;

/// <summary>The loops, as the state thread reaches them. Any thread.</summary>
internal interface IStateLoops
{
    /// <summary>Hands a call to the loop that owns the group. False when the loop takes nothing any more.</summary>
    bool Post(StateCall call);
}
