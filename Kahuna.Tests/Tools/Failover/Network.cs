using Kahuna.Tests.Tools.Processes;

namespace Kahuna.Tests.Tools.Failover;

/// <summary>
/// A network namespace for each of three nodes and one for the caller, in which a bridge connects them. The machine's
/// own network is left alone. Owned by <see cref="FailoverCommand"/>; one thread.
/// </summary>
internal sealed class Network : IDisposable
{
    private static readonly int[] s_nodes = [1, 2, 3];

    private readonly List<string> _made = [];

    /// <summary>What is put before a command that the caller runs.</summary>
    public string[] InsideCaller => Inside(0);

    public static string Address(int node) => $"10.213.7.{node}";

    public string[] Inside(int node) => ["ip", "netns", "exec", Space(node)];

    public void Make()
    {
        foreach (int node in s_nodes.Prepend(0))
        {
            Ip("netns", "add", Space(node));
            _made.Add(Space(node));
            Ip("-n", Space(node), "link", "set", "lo", "up");
        }

        string caller = Space(0);
        Ip("-n", caller, "link", "add", "bridge", "type", "bridge");
        Ip("-n", caller, "addr", "add", $"{Address(254)}/24", "dev", "bridge");
        Ip("-n", caller, "link", "set", "bridge", "up");
        foreach (int node in s_nodes)
        {
            Ip("-n", caller, "link", "add", $"port{node}", "type", "veth", "peer", "name", "net", "netns", Space(node));
            Ip("-n", caller, "link", "set", $"port{node}", "master", "bridge", "up");
            Ip("-n", Space(node), "addr", "add", $"{Address(node)}/24", "dev", "net");
            Ip("-n", Space(node), "link", "set", "net", "up");
        }
    }

    /// <summary>
    /// What the node and the others say to each other is lost, in both directions and without a word.
    /// </summary>
    public void CutPeers(int node, bool isCut)
    {
        foreach (int other in s_nodes.Where(other => other != node))
        {
            Ip("-n", Space(node), "route", isCut ? "add" : "del", "blackhole", $"{Address(other)}/32");
            Ip("-n", Space(other), "route", isCut ? "add" : "del", "blackhole", $"{Address(node)}/32");
        }
    }

    /// <summary>The node's port at the bridge takes nothing in and lets nothing out.</summary>
    public void CutAll(int node, bool isCut) =>
        Ip(["-n", Space(0), "link", "set", $"port{node}", .. isCut ? (string[])["nomaster"] : ["master", "bridge"]]);

    public void Dispose() => _made.ForEach(static space => Child.TryRead("ip", "netns", "del", space));

    private static string Space(int node) => $"kahuna{Environment.ProcessId}-{(node == 0 ? "caller" : $"{node}")}";

    private static void Ip(params string[] arguments) => Child.Read(["ip", .. arguments]);
}
