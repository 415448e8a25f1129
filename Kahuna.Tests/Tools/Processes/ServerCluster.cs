using System.Security.Cryptography;
using Kahuna.Tests.Cluster;

namespace Kahuna.Tests.Tools.Processes;

/// <summary>Three server processes of a measurement. Owned by a measuring program; not thread-safe.</summary>
internal sealed class ServerCluster
{
    private const double StartSeconds = 600;

    private readonly Measurement _run;
    private readonly string _directory;

    /// <param name="run">Whose processes the nodes are.</param>
    /// <param name="directory">Where they lie in the measurement's directory.</param>
    /// <param name="server">The server's assembly; null: this clone's.</param>
    public ServerCluster(Measurement run, string directory, string? server = null)
        : this(run, directory, [.. ProcessCluster.FreePorts(3).Select((port, i) =>
        {
            ServerPlace place = new(i + 1, $"https://127.0.0.1:{port}", directory);
            return server is null ? place : place with { Server = server };
        })])
    {
    }

    public ServerCluster(Measurement run, string directory, IReadOnlyList<ServerPlace> places)
    {
        (_run, _directory) = (run, directory);
        string peers = string.Join(',', places.Select(static place => $"{place.Number}={place.Url}"));
        Nodes =
        [
            .. from place in places
               select new ServerNode(
                   run, place, "--node-id", $"{place.Number}", "--advertise", place.Url, "--peers", peers,
                   "--cluster-secret-file", Secret),
        ];
        Endpoints = string.Join(',', places.Select(static place => place.Url));
    }

    public IReadOnlyList<ServerNode> Nodes { get; }

    public string Endpoints { get; }

    /// <summary>The nodes that do not lead the first partition.</summary>
    public IReadOnlyList<ServerNode> Followers
    {
        get
        {
            ServerNode leader = Leader();
            return [.. Nodes.Where(node => node != leader)];
        }
    }

    private string Secret => _run.PathOf(Path.Combine(_directory, "secret"));

    /// <summary>Starts all nodes and waits until they are ready.</summary>
    public void Up(params string[] options)
    {
        Directory.CreateDirectory(_run.PathOf(_directory));
        if (!File.Exists(Secret))
        {
            File.WriteAllText(Secret, RandomNumberGenerator.GetHexString(64));
        }

        if (!OperatingSystem.IsWindows())
        {
            File.SetUnixFileMode(Secret, UnixFileMode.UserRead | UnixFileMode.UserWrite);
        }

        foreach (ServerNode node in Nodes)
        {
            node.Start(options);
            if (node.Number == 1)
            {
                // The first node alone makes the development authority; the others find it.
                node.Await(60, "does not answer", () => node.IsHealthy);
            }
        }

        AwaitReady();
    }

    public void AwaitReady()
    {
        foreach (ServerNode node in Nodes)
        {
            node.Await(StartSeconds, "is not ready", () => node.IsReady, 0.1);
        }
    }

    /// <summary>The same nodes on their data, with other options.</summary>
    public void Restart(params string[] options)
    {
        foreach (ServerNode node in Nodes)
        {
            node.Stop();
        }

        Up(options);
    }

    /// <summary>Ends the nodes and removes what they hold.</summary>
    public void Clean()
    {
        foreach (ServerNode node in Nodes)
        {
            node.Kill();
        }

        if (Directory.Exists(_run.PathOf(_directory)))
        {
            Directory.Delete(_run.PathOf(_directory), recursive: true);
        }
    }

    /// <summary>The node that leads the first partition.</summary>
    public ServerNode Leader(bool ephemeral = false) =>
        _run.Await(60, "no node leads", () => Nodes.FirstOrDefault(node =>
        node.IsAlive && node.Status() is { } status
            && (ephemeral ? status.EphemeralPartitions : status.Partitions) is [{ Role: "leader" }, ..]));

    /// <summary>
    /// Whether all nodes have the same digests, once they have applied the same entries. Without load only.
    /// </summary>
    public bool DigestsEqual()
    {
        PartitionRow[][] rows = _run.Await(120, "the nodes have not applied the same entries", () =>
        {
            PartitionRow[][] all = [.. Nodes.Select(static node => node.RequireStatus().Partitions.ToArray())];
            return all.All(row => Same(row, all[0], static partition => partition.AppliedIndex)) ? all : null;
        }, 0.2);
        return rows.All(row => Same(row, rows[0], static partition => (partition.Digest, partition.Keys)));
    }

    private static bool Same<T>(PartitionRow[] one, PartitionRow[] other, Func<PartitionRow, T> what) =>
        one.Select(what).SequenceEqual(other.Select(what));
}
