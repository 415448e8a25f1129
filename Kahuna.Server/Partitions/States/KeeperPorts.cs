namespace Kahuna.Server.Partitions.States;

/// <summary>Everything the state thread's work reaches the world through; a simulator gives its own.</summary>
/// <param name="Store">The node's stored states.</param>
/// <param name="Log">The node's log; only its sizes are asked.</param>
/// <param name="Transport">Links to the peers.</param>
/// <param name="Clock">Monotonic time; no timer of it is used.</param>
/// <param name="Report">Gets a line for each thing that an operator may want to know.</param>
internal sealed record KeeperPorts(IStateStore Store, ILogStore Log, IPeerTransport Transport, TimeProvider Clock, Action<string> Report)
{
    /// <summary>Called when a state was stored: nothing more of it will come for a while.</summary>
    public Action Rest { get; init; } = static () => { };
}
