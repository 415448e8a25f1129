using System.Text;
using Kahuna.Client;
using Kahuna.Client.Watches;
using Kahuna.Tests.Simulation.Engine;
using Kahuna.Tests.Simulation.Rules;
using Kahuna.Wire.Routing;
using Kahuna.Wire.Watches;

namespace Kahuna.Tests.Simulation.Workload;

/// <summary>
/// A caller that watches keys by the shipped client: from now, from where it was before, or with their state first;
/// fast, or so slowly that it falls behind. Owned by one client of a run.
/// </summary>
internal sealed class WatchCaller(SimCluster cluster, KahunaClient client, int process)
{
    private const long LastNs = 30_000_000_000;

    private readonly SimRandom _random = new SimRandom(cluster.Config.Seed).Fork(39_000 + (ulong)process);

    /// <summary>Where earlier watches ended, as text.</summary>
    private readonly List<(WatchOptions Options, string Name, string Position)> _left = [];

    public async Task RunAsync()
    {
        while (!cluster.LoadEnds)
        {
            await cluster.PauseAsync(_random.Exponential(1_000));
            await WatchAsync(isLast: false);
        }

        // The last one has to get to where everything is now.
        await WatchAsync(isLast: true);
    }

    private async Task WatchAsync(bool isLast)
    {
        (WatchOptions options, string name) = _left.Count > 0 && _random.Chance(0.5) ? TakeLeft() : Draw();
        if (isLast)
        {
            // With room for one change it would ask again after each, and could not be done soon.
            options = options with { BufferedEvents = 10_000, BufferedBytes = 16 << 20 };
        }

        Durability durability = options.Durability!.Value;
        CancellationTokenSource end = new();
        WatchedKeys keys = new(
            cluster, $"watch caller {process}", durability, options.Scope, name, withValues: !options.KeysOnly);
        bool isSlow = !isLast && _random.Chance(0.3);
        SdkWatch watch = new(cluster, keys, options, cluster.Scheduler.NowNs);
        cluster.SdkWatches.Add(watch);
        SynchronizationContext context = SynchronizationContext.Current!;
        long forNs = (long)(_random.Exponential(5_000) * 1_000_000);
        bool isOver = false;
        cluster.Scheduler.After(isLast ? LastNs : forNs, () => context.Post(
            _ =>
            {
                if (!isOver)
                {
                    end.Cancel();
                }
            },
            null));
        ChangePoint[] last = keys.Ends();
        try
        {
            await foreach (WatchEvent told in client.KeyValues.WatchAsync(name, options, end.Token))
            {
                watch.Hear(in told);
                if (isLast && watch.IsWhole && keys.HasReached(last))
                {
                    break;
                }

                if (isSlow && _random.Chance(0.3))
                {
                    await cluster.PauseAsync(_random.Exponential(300));
                }
            }
        }
        catch (KahunaCanceledException)
        {
            if (isLast)
            {
                cluster.Rules.Break(
                    WatchedKeys.SoonRule, $"watch caller {process} has not got to the end of {durability} \"{name}\"");
            }
        }
        catch (KahunaException error) when (error.Code is not KahunaErrorCode.InvalidArgument)
        {
            // No node has begun the watch in time.
        }

        end.Dispose();
        isOver = true;
        if (watch.Position is { } position)
        {
            _left.Add((options, name, position.ToString()));
        }
    }

    private (WatchOptions Options, string Name) TakeLeft()
    {
        int at = _random.Next(_left.Count);
        (WatchOptions options, string name, string position) = _left[at];
        _left.RemoveAt(at);
        return (options with { From = WatchPosition.Parse(position), WithState = false }, name);
    }

    private (WatchOptions Options, string Name) Draw()
    {
        bool isEphemeral = cluster.Config.HasEphemeral && _random.Chance(0.5);
        WatchScope scope = _random.Pick([WatchScope.Key, WatchScope.Bucket, WatchScope.Prefix, WatchScope.Prefix]);
        int slot = _random.Next(cluster.Config.Layout.Count);
        IReadOnlyList<ToldChange> all = cluster.Rules.Changes.Of(slot)?.All ?? [];
        string key = all.Count > 0 ? all[^(1 + _random.Next(Math.Min(all.Count, 50)))].Key : "k0.0";
        string name = scope switch
        {
            WatchScope.Key => key,
            WatchScope.Bucket => Encoding.UTF8.GetString(KeyRouting.Bucket(Encoding.UTF8.GetBytes(key))),
            _ => key[..Math.Min(key.Length, _random.Pick([0, 0, 1, 1, 2, 3]))],
        };
        return (new WatchOptions
        {
            Durability = isEphemeral ? Durability.Ephemeral : Durability.Persistent,
            Scope = scope,
            KeysOnly = _random.Chance(0.3),
            WithState = _random.Chance(0.5),
            ProgressInterval = TimeSpan.Zero,
            BufferedEvents = _random.Pick([1, 3, 10_000]),
            BufferedBytes = _random.Pick([1, 16 << 20, 16 << 20]),
        }, name);
    }
}
