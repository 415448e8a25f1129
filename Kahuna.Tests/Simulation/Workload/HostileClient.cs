using System.Globalization;
using System.Text;
using Kahuna.Client.Connection;
using Kahuna.Server.Api;
using Kahuna.Tests.Cluster.Attack;
using Kahuna.Tests.Simulation.Engine;
using Kahuna.Tests.Simulation.Nodes;
using Kahuna.Wire;
using Kahuna.Wire.Commands;
using AcquireLockRequest = Kahuna.Server.Api.Protos.AcquireLockRequest;
using WireDurability = Kahuna.Server.Api.Protos.Durability;
using WireLockMode = Kahuna.Server.Api.Protos.LockMode;

namespace Kahuna.Tests.Simulation.Workload;

/// <summary>
/// A client that takes as much of the cluster as it can get, in rounds, each at a node that leads. What it is answered
/// is nobody's concern: that others are answered is. Owned by one run.
/// </summary>
internal sealed class HostileClient(SimCluster cluster, int number, HostileKind kind)
{
    private const int SlowStreams = 3;
    private const int SlowReads = 60;
    private const int SlowBytes = 12_000;
    private const int PagesAtOnce = 200;
    private const int KeyedAtOnce = 40;
    private const int ObserversAtOnce = 600;
    private const int ObserversMs = 2_000;
    private const int ClaimsAtOnce = 60;
    private const int ClaimLeaseMs = 600;
    private const int LargeBytes = 30_000;
    private const int CollidingAtOnce = 150;

    private static readonly List<byte[]> s_colliding = CollidingNames.Make(2_000, lower: 0x6B616875);

    private readonly SimContext _context = new(cluster.Scheduler.After);
    private readonly SimRandom _random = new SimRandom(cluster.Config.Seed).Fork(40_000 + (ulong)number);
    private readonly List<RawStream> _streams = [];
    private int _names;

    public void Start() => _context.Post(_ => _ = RunAsync(), null);

    private async Task RunAsync()
    {
        try
        {
            while (!cluster.LoadEnds)
            {
                await cluster.PauseAsync(_random.Exponential(200));
                await TryRoundAsync();
            }
        }
        catch (Exception error)
        {
            cluster.Rules.Break("the run goes through", $"a hostile client: {error}");
        }
    }

    private async Task TryRoundAsync()
    {
        try
        {
            await (kind switch
            {
                HostileKind.SlowReaders => ReadSlowlyAsync(),
                HostileKind.KeyedCalls => CallWithKeysAsync(),
                HostileKind.Observers => ObserveAsync(),
                HostileKind.Claims => ClaimAsync(),
                HostileKind.FullWindow => FillWindowAsync(),
                HostileKind.CollidingKeys => CollideAsync(),
                HostileKind.Pages => AskForPagesAsync(),
                _ => WriteLargeAsync(),
            });
        }
        catch (Exception error) when (error is IOException or OperationCanceledException)
        {
            // Its connection is gone, or nobody took it.
        }

        foreach (RawStream stream in _streams)
        {
            await stream.DisposeAsync();
        }

        _streams.Clear();
    }

    private async Task ReadSlowlyAsync()
    {
        string key = NewKey();
        RawStream writer = await OpenAsync(key);
        Set(writer, key, SlowBytes, isEphemeral: false);
        await writer.SendAsync();
        await ReadForAsync(writer, 300);
        for (int i = 0; i < SlowStreams; i++)
        {
            RawStream stream = await OpenAsync(key);
            for (int read = 0; read < SlowReads; read++)
            {
                stream.Add(new Command
                {
                    Kind = CommandKind.Get,
                    Durability = Durability.Persistent,
                    Key = Encoding.UTF8.GetBytes(key),
                });
            }

            await stream.SendAsync();
        }

        await cluster.PauseAsync(_random.Between(1_000, 5_000));
        if (_random.Chance(0.5))
        {
            await ReadForAsync(_streams[^1], 500);
        }
    }

    private async Task AskForPagesAsync()
    {
        string key = NewKey();
        RawStream writer = await OpenAsync(key);
        Set(writer, key, SlowBytes, isEphemeral: false);
        await writer.SendAsync();
        await ReadForAsync(writer, 300);
        for (int i = 0; i < SlowStreams; i++)
        {
            RawStream stream = await OpenAsync(key);
            for (int page = 0; page < PagesAtOnce; page++)
            {
                stream.Add(new Command
                {
                    Kind = CommandKind.KeyRange,
                    Durability = Durability.Persistent,
                    Flags = CommandFlags.Number | CommandFlags.AtRevision,
                    Key = Encoding.UTF8.GetBytes(key),
                    Number = InitialPartition.Of(Encoding.UTF8.GetBytes(key), cluster.Config.Groups),
                    AtRevision = RangeRequest.Options(100, RangeFlags.None),
                });
            }

            await stream.SendAsync();
            if (_random.Chance(0.7))
            {
                await ReadForAsync(stream, 500);
            }
        }

        await cluster.PauseAsync(_random.Between(0, 2_000));
    }

    private async Task CallWithKeysAsync()
    {
        string key = NewKey();
        bool isEphemeral = cluster.Config.HasEphemeral && _random.Chance(0.3);
        RawStream stream = await OpenAsync(key, isEphemeral);
        for (int i = 0; i < 20; i++)
        {
            for (int call = 0; call < KeyedAtOnce; call++)
            {
                ulong session = cluster.Clients.NewSessionId();
                stream.Add(new Command
                {
                    Kind = CommandKind.Set,
                    Durability = isEphemeral ? Durability.Ephemeral : Durability.Persistent,
                    Flags = CommandFlags.Session | CommandFlags.Opening,
                    Key = Encoding.UTF8.GetBytes(key),
                    Value = "attack"u8,
                    SessionId = call % 8 == 0 ? session : IdempotencyKey.AsKey(session),
                    Sequence = 1,
                });
            }

            await stream.SendAsync();
            await cluster.PauseAsync(200);
        }
    }

    private async Task ObserveAsync()
    {
        string key = NewKey();
        RawStream stream = await OpenAsync(key);
        for (int i = 0; i < ObserversAtOnce; i++)
        {
            stream.Add(new Command
            {
                Kind = CommandKind.LockObserve,
                Flags = CommandFlags.Number,
                Durability = Durability.Persistent,
                Key = Encoding.UTF8.GetBytes(key),
                Number = ObserversMs,
            });
        }

        await stream.SendAsync();
        await cluster.PauseAsync(_random.Between(0, ObserversMs));
        RawStream other = await OpenAsync(key);
        other.Add(Claim(key, "attack", WireLockMode.Exclusive));
        await other.SendAsync();
        await ReadForAsync(stream, ObserversMs);
    }

    private async Task ClaimAsync()
    {
        string key = NewKey();
        RawStream stream = await OpenAsync(key);
        stream.Add(Claim(key, "attack", WireLockMode.Exclusive));
        await stream.SendAsync();
        for (int i = 0; i < ClaimsAtOnce; i++)
        {
            stream.Add(Claim(key, string.Create(CultureInfo.InvariantCulture, $"attack {i}"), WireLockMode.Shared));
        }

        await stream.SendAsync();
        await ReadForAsync(stream, ClaimLeaseMs * 2);
    }

    private async Task FillWindowAsync()
    {
        string key = NewKey();
        ulong session = cluster.Clients.NewSessionId();
        RawStream stream = await OpenAsync(key);
        for (ulong number = 1; number <= Limits.SessionWindow; number++)
        {
            stream.Add(new Command
            {
                Kind = CommandKind.Set,
                Durability = Durability.Persistent,
                Flags = CommandFlags.Session | CommandFlags.Opening,
                Key = Encoding.UTF8.GetBytes(key),
                Value = "attack"u8,
                SessionId = session,
                Sequence = number,
                Lag = (ushort)(number - 1),
            });
        }

        await stream.SendAsync();
        await ReadForAsync(stream, 3_000);
        cluster.Clients.WindowsFilled += stream.Done == Limits.SessionWindow ? 1 : 0;
        await cluster.PauseAsync(_random.Between(20_000, 40_000));
    }

    private async Task CollideAsync()
    {
        int partition = _random.Next(cluster.Config.Groups);
        byte[][] keys =
        [
            .. s_colliding.Where(key => InitialPartition.Of(key, cluster.Config.Groups) == partition)
                .Take(CollidingAtOnce),
        ];
        RawStream stream = await OpenAsync(Encoding.ASCII.GetString(keys[0]));
        foreach (byte[] key in keys)
        {
            stream.Add(new Command
            {
                Kind = CommandKind.Set,
                Durability = Durability.Persistent,
                Key = key,
                Value = "attack"u8,
            });
        }

        await stream.SendAsync();
        await cluster.PauseAsync(_random.Between(0, 2_000));
        foreach (byte[] key in keys)
        {
            stream.Add(new Command { Kind = CommandKind.Delete, Durability = Durability.Persistent, Key = key });
        }

        await stream.SendAsync();
        await ReadForAsync(stream, 1_000);
    }

    private async Task WriteLargeAsync()
    {
        string key = NewKey();
        bool isEphemeral = cluster.Config is { HasEphemeral: true, EphemeralBytesMax: long.MaxValue }
            && _random.Chance(0.5);
        RawStream stream = await OpenAsync(key, isEphemeral);
        for (int i = 0; i < 4; i++)
        {
            Set(stream, key, _random.Chance(0.1) ? Limits.ValueBytesDefault + 1 : LargeBytes, isEphemeral);
            await stream.SendAsync();
            await cluster.PauseAsync(_random.Between(100, 500));
        }

        stream.Add(new Command
        {
            Kind = CommandKind.Delete,
            Durability = isEphemeral ? Durability.Ephemeral : Durability.Persistent,
            Key = Encoding.UTF8.GetBytes(key),
        });
        await stream.SendAsync();
        await ReadForAsync(stream, 500);
    }

    /// <summary>A stream to the node that leads the key's group, as far as there is one.</summary>
    private async Task<RawStream> OpenAsync(string key, bool isEphemeral = false)
    {
        int slot = cluster.Config.Layout.IndexOf(
            InitialPartition.Of(Encoding.UTF8.GetBytes(key), cluster.Config.Groups), isEphemeral);
        SimNode node = cluster.Nodes.FirstOrDefault(node => node.Loops?.Group(slot).IsLeader == true)
            ?? _random.Pick(cluster.Nodes);
        IFrameChannel channel = cluster.Clients.Channel(cluster.Config.Clients + number);
        using CancellationTokenSource patience = new();
        cluster.Scheduler.After(1_000_000_000, () => Cancel(patience));
        RawStream stream = new(channel, await channel.OpenAsync(new Uri($"https://n{node.Id}:1"), patience.Token));
        _streams.Add(stream);
        await stream.GreetAsync();
        return stream;
    }

    private static void Cancel(CancellationTokenSource source)
    {
        try
        {
            source.Cancel();
        }
        catch (ObjectDisposedException)
        {
            // The stream is open.
        }
    }

    private static Command Claim(string key, string owner, WireLockMode mode) =>
        LockCommandBuilder.Of(new AcquireLockRequest
        {
            Resource = key,
            Durability = WireDurability.Persistent,
            Owner = owner,
            LeaseMs = ClaimLeaseMs,
            Mode = mode,
            WaitMs = 4 * ClaimLeaseMs,
        })
            .Acquire(4 * ClaimLeaseMs);

    private static void Set(RawStream stream, string key, int bytes, bool isEphemeral) =>
        stream.Add(new Command
        {
            Kind = CommandKind.Set,
            Durability = isEphemeral ? Durability.Ephemeral : Durability.Persistent,
            Key = Encoding.UTF8.GetBytes(key),
            Value = new byte[bytes],
        });

    /// <summary>Reads until everything is answered, or for so long.</summary>
    private Task ReadForAsync(RawStream stream, double ms)
    {
        TaskCompletionSource over = new(TaskCreationOptions.RunContinuationsAsynchronously);
        cluster.Scheduler.After((long)(ms * 1_000_000), () => over.TrySetResult());
        _ = ReadAllAsync(stream, over);
        return over.Task;
    }

    private static async Task ReadAllAsync(RawStream stream, TaskCompletionSource over)
    {
        try
        {
            await stream.ReadAllAsync();
        }
        catch (IOException)
        {
            // The connection is gone.
        }

        over.TrySetResult();
    }

    private string NewKey() => string.Create(CultureInfo.InvariantCulture, $"attack {number} {++_names % 5}");
}
