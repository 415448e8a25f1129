namespace Kahuna.Tests.Tools.Failover;

/// <summary>
/// A way in which a leader fails, by its name on the command line, and what the table calls it. Immutable.
/// </summary>
internal sealed record FaultKind(string Name, string Title)
{
    public static readonly FaultKind Kill = new("kill", "kill -9");
    public static readonly FaultKind Pause = new("pause", "SIGSTOP");
    public static readonly FaultKind Peers = new("peers", "cut off from the other nodes only");
    public static readonly FaultKind Isolated = new("isolated", "cut off from everybody");

    public static FaultKind Of(string name) => new[] { Kill, Pause, Peers, Isolated }.Single(kind => kind.Name == name);
}
