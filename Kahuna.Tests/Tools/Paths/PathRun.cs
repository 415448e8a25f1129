using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Locks;
using Kahuna.Server.Hosting;

namespace Kahuna.Tests.Tools.Paths;

/// <summary>
/// In the woven copy: runs each operation by itself against a cluster of three nodes inside the process, and notes
/// which methods of client, leader and followers it enters. Used once; one thread.
/// </summary>
internal sealed class PathRun(IReadOnlyList<WovenMethod> methods, int repetitions)
{
    private const int WarmupCalls = 200;

    /// <summary>After this time the followers have applied an entry, too.</summary>
    private static readonly TimeSpan s_settling = TimeSpan.FromMilliseconds(3);

    private readonly List<OperationPath> _paths = [];

    /// <summary>The ways of all operations.</summary>
    public async Task<IReadOnlyList<OperationPath>> RunAsync()
    {
        await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(3);
        await using KahunaClient client = KahunaClient.Connect(cluster.Endpoints);
        byte[] value = new byte[128];
        int next = 0;
        string Name() => FormattableString.Invariant($"path/{next++ % 50}");
        await NoteAsync("set", async () => await client.KeyValues.SetAsync(Name(), value));
        await NoteAsync("get", async () => await client.KeyValues.GetAsync(Name()));
        SetOptions ephemeral = new() { Durability = Durability.Ephemeral };
        await NoteAsync("ephemeral set", async () => await client.KeyValues.SetAsync(Name(), value, ephemeral));
        LockHandle? held = null;
        await NoteAsync(
            "acquire",
            async () => held = await client.Locks.AcquireAsync(
                Name(), TimeSpan.FromSeconds(10), TimeSpan.FromSeconds(5)),
            async () => await held!.DisposeAsync());
        return _paths;
    }

    private async Task NoteAsync(string operation, Func<Task> call, Func<Task>? after = null)
    {
        int[] entered = new int[methods.Count];
        for (int i = 0; i < WarmupCalls + repetitions; i++)
        {
            await Task.Delay(i < WarmupCalls ? TimeSpan.Zero : s_settling);
            long first = PathTracer.Count;
            await call();
            if (i >= WarmupCalls)
            {
                // Not Task.Delay: a timer's thread would enter methods of its own.
                Thread.Sleep(s_settling);
                foreach (int method in PathTracer.Between(first, PathTracer.Count))
                {
                    entered[method]++;
                }
            }

            await (after?.Invoke() ?? Task.CompletedTask);
        }

        // What runs in fewer than half of the calls belongs to a tick or to another operation.
        _paths.Add(new OperationPath(
            operation, [.. methods.Where((_, number) => entered[number] * 2 >= repetitions)]));
    }
}
