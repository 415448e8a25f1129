using System.Diagnostics;
using System.Globalization;
using System.Net;
using System.Net.Http.Headers;
using Kahuna.Client;
using Kahuna.Tests.Access.Processes;
using Kahuna.Tests.Cluster;
using Kahuna.Tests.Cluster.Soak;
using Xunit.Abstractions;

namespace Kahuna.Tests.Access.Hostile;

/// <summary>
/// Three real processes that require authentication, two users that work on their own names, and one that tries to
/// read, change and stop what is theirs. Used once.
/// </summary>
internal sealed class HostileRun(TimeSpan duration, int seed, ITestOutputHelper output)
{
    private const string PasswordOfOthers = "the password of a user";
    private const int HostileTasks = 3;

    /// <summary>A node may take up as much as this, in bytes, whatever is done to it.</summary>
    private const long NodeBytesMax = 1L << 30;

    private static readonly string[] s_users = ["ann", "bob"];

    private readonly SecretMarker _marker = new();
    private readonly HostileTally _tally = new();

    /// <summary>
    /// Runs, and returns what was done. Throws <see cref="SoakException"/> with everything that is wrong.
    /// </summary>
    public async Task<string> RunAsync()
    {
        await using AccessProcesses cluster = new(output, "--partitions", "3");
        string done = "";
        await cluster.Cluster.RunAsync(async () =>
        {
            await BeginAsync(cluster);
            done = await RunAsync(cluster);
        });
        return done;
    }

    private async Task BeginAsync(AccessProcesses cluster)
    {
        await cluster.Cluster.StartAsync();
        foreach (string user in (string[])[.. s_users, HostileUser.Name])
        {
            await cluster.PutRoleAsync(cluster.Nodes[0], user, user);
            await cluster.CreateUserAsync(user, PasswordOf(user), user);
        }

        // A node that has seen a right password no longer limits it, however many wrong ones come.
        foreach (NodeProcess node in cluster.Nodes)
        {
            foreach (string user in (string[])[.. s_users, HostileUser.Name, AccessProcesses.Root])
            {
                string password = user == AccessProcesses.Root ? AccessProcesses.RootPassword : PasswordOf(user);
                await Eventually.TrueAsync(LastNet.Span, $"node {node.Id} knows {user}", async () =>
                    (await cluster.AskAsync(
                        node, user, password, "GET", $"/v1/kv/{user}/x?durability=DURABILITY_PERSISTENT")).Status
                            is HttpStatusCode.OK or HttpStatusCode.NotFound);
            }
        }
    }

    private async Task<string> RunAsync(AccessProcesses cluster)
    {
        await RequireThatMarkersAreSeenAsync(cluster);
        using CancellationTokenSource end = new(duration);
        List<KahunaClient> clients = [];
        LegitimateUser[] users =
        [
            .. s_users.Select((name, i) =>
            {
                clients.Add(cluster.Connect(name, PasswordOf(name)));
                return new LegitimateUser(name, clients[^1], _marker, seed + i, _tally);
            }),
        ];
        HostileUser[] hostile =
        [
            .. Enumerable.Range(0, HostileTasks).Select(i =>
                new HostileUser(cluster.Nodes, _marker, seed + 100 + i, _tally)),
        ];
        Task[] work =
        [
            .. users.Select(user => Task.Run(() => user.RunAsync(end.Token))),
            .. hostile.Select(user => Task.Run(() => user.RunAsync(end.Token))),
        ];
        await Task.WhenAll(work);
        long most = cluster.Nodes.Max(static node => ResidentBytes(node));
        Array.ForEach(hostile, static user => user.Dispose());
        await using (KahunaClient root = cluster.Connect(AccessProcesses.Root, AccessProcesses.RootPassword))
        {
            foreach (LegitimateUser user in users)
            {
                await user.CheckAsync(root);
            }
        }

        foreach (KahunaClient client in clients)
        {
            await client.DisposeAsync();
        }

        Judge(cluster, most);
        return string.Create(
            CultureInfo.InvariantCulture, $"seed {seed}: {_tally}; at most {most >> 20} MiB per node");
    }

    private void Judge(AccessProcesses cluster, long most)
    {
        Require(cluster.Nodes.All(static node => node.IsRunning), "a node has ended");
        Require(most <= NodeBytesMax, string.Create(CultureInfo.InvariantCulture, $"a node takes up {most >> 20} MiB"));
        foreach (string what in (string[])
        [
            "attacks", "refused requests", "requests of JSON", "calls of gRPC", "streams of frames",
            "legitimate reads", "legitimate changes",
        ])
        {
            Require(_tally.Of(what) > 0, $"the run proves nothing: no {what}");
        }

        long passing = _tally.Of("legitimate calls that ended with a passing error");
        long good = _tally.Of("legitimate reads") + _tally.Of("legitimate changes");
        Require(passing <= good, $"{passing} legitimate calls failed, and {good} did not");
        if (_tally.Problems.Count > 0)
        {
            throw new SoakException($"seed {seed}: {string.Join('\n', _tally.Problems.Distinct())}\n{_tally}");
        }
    }

    /// <summary>
    /// The same connections, with the rights of a user, see the marker in every form; else they prove nothing.
    /// </summary>
    private async Task RequireThatMarkersAreSeenAsync(AccessProcesses cluster)
    {
        await using (KahunaClient ann = cluster.Connect("ann", PasswordOf("ann")))
        {
            await ann.KeyValues.SetAsync("ann/plain-0", _marker.Text + " ann");
            await ann.KeyValues.SetAsync($"ann/{_marker.Text}-probe", "value");
            HostileTally seen = new();
            using HttpClient probe = new(HostileConnections.Handler(_marker, seen));
            foreach (string path in (string[])
            [
                "/v1/kv/ann/plain-0?durability=DURABILITY_PERSISTENT",
                "/v1/scan?prefix=ann/s3&durability=DURABILITY_PERSISTENT",
            ])
            {
                long before = seen.Revealed;
                await Eventually.TrueAsync(LastNet.Span, $"{path} is served", async () =>
                {
                    using HttpRequestMessage request = new(HttpMethod.Get, cluster.Nodes[0].Url + path);
                    request.Headers.Authorization = AuthenticationHeaderValue.Parse(
                        AccessNode.Basic("ann", PasswordOf("ann")));
                    using HttpResponseMessage answer = await probe.SendAsync(request);
                    await answer.Content.ReadAsByteArrayAsync();
                    return answer.IsSuccessStatusCode;
                });
                Require(seen.Revealed > before, $"the run proves nothing: {path} does not show the marker");
            }

            await ann.KeyValues.DeleteAsync("ann/plain-0");
            await ann.KeyValues.DeleteAsync($"ann/{_marker.Text}-probe");
        }
    }

    private void Require(bool holds, string problem)
    {
        if (!holds)
        {
            _tally.Wrong(problem);
        }
    }

    private static string PasswordOf(string user) =>
        user == HostileUser.Name ? HostileUser.Password : PasswordOfOthers + user;

    private static long ResidentBytes(NodeProcess node)
    {
        if (!node.IsRunning)
        {
            return 0;
        }

        using Process process = Process.GetProcessById(node.ProcessId);
        return process.WorkingSet64;
    }
}
