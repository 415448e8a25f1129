using System.Text;
using System.Text.RegularExpressions;
using Kahuna.Client;
using Kahuna.Client.Connection;
using Kahuna.Client.DependencyInjection;
using Kahuna.Client.Elections;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Locks;
using Kahuna.Client.Outcomes;
using Kahuna.Client.Sequences;
using Kahuna.Client.Transactions;
using Kahuna.Client.Watches;
using Kahuna.Server.Hosting;
using Kahuna.Tests.Tidy;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Diagnostics.HealthChecks;

namespace Kahuna.Tests.Client;

/// <summary>
/// The examples of the pages of the client, word for word in the regions below: they compile, and they run against a
/// real node.
/// </summary>
public sealed partial class ClientDocumentTests
{
    private static readonly string[] s_pages =
        ["client", "scans", "batches", "transactions", "watches", "locks", "sequences"];

    private static readonly string[] s_sources = [nameof(ClientDocumentTests), nameof(UsersDocumentTests)];

    [Fact]
    public void The_pages_show_the_code_that_is_run_here()
    {
        string source = string.Concat(s_sources.Select(static file =>
            File.ReadAllText(Repository.FullPath($"Kahuna.Tests/Client/{file}.cs"))));
        string[] shown = [.. s_pages.SelectMany(Examples)];
        string[] run = [.. Region().Matches(source).Select(match => Shown(match.Groups[1].Value))];
        Assert.All(s_pages, page => Assert.NotEmpty(Examples(page)));
        Assert.Equal(28, shown.Length);
        Assert.Equal(run.Order(StringComparer.Ordinal), shown.Order(StringComparer.Ordinal));
    }

    [Fact]
    public void The_page_names_every_error_code_and_every_option()
    {
        string page = File.ReadAllText(Repository.FullPath("docs/client.md"));
        Assert.All(Enum.GetNames<KahunaErrorCode>().Where(name => name != nameof(KahunaErrorCode.Unspecified)), name =>
            Assert.Contains($"`{name}`", page, StringComparison.Ordinal));
        Assert.All(typeof(KahunaClientOptions).GetProperties(), property =>
            Assert.Contains($"`{property.Name}`", page, StringComparison.Ordinal));
    }

    [Fact]
    public async Task The_examples_run()
    {
        await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(1).WaitAsync(Wait.Longest);
        await RunAsync(cluster.Endpoints).WaitAsync(Wait.Longest);
        await RunOptionsAsync(cluster.Endpoints, DevelopmentAuthority.AuthorityPath()).WaitAsync(Wait.Longest);
    }

    private static async Task RunAsync(string endpoint)
    {
        #region connect
        await using KahunaClient client = KahunaClient.Connect(endpoint);
        ClusterDescription cluster = await client.DescribeAsync();
        Console.WriteLine($"{cluster.ClusterId}: {cluster.Nodes.Count} nodes, {cluster.Partitions.Count} partitions");
        #endregion
        Assert.Single(cluster.Nodes);

        #region read and write
        KeyValueClient kv = client.KeyValues;
        SetResult set = await kv.SetAsync("config/color", "blue");
        GetResult get = await kv.GetAsync("config/color");
        Console.WriteLine($"{get.Value.AsString()} at revision {get.Revision}");

        ExistsResult exists = await kv.ExistsAsync("config/size");
        DeleteResult deleted = await kv.DeleteAsync("config/color");
        IncrementResult counter = await kv.IncrementAsync("config/visits", 5);
        #endregion
        Assert.Equal(
            (1, "blue", false, true, 5),
            (set.Revision.Value, get.Value.AsString(), exists.Found, deleted.Deleted, counter.Value));

        #region scan
        await foreach (KeyValueEntry entry in kv.ScanAsync("config/"))
        {
            Console.WriteLine($"{entry.Key} = {entry.Value.AsString()} at revision {entry.Revision}");
        }

        long orders = await kv.CountAsync("orders/");
        ScanOptions latest = new() { Descending = true, Limit = 10, To = "orders/2027" };
        await foreach (KeyValueEntry entry in kv.ScanAsync("orders/", latest))
        {
            Console.WriteLine(entry.Key);
        }
        #endregion
        Assert.Equal((0, 1), (orders, await kv.CountAsync("config/")));

        #region consistent scan
        ScanOptions moment = new() { Consistent = true };
        Dictionary<string, string?> accounts = [];
        try
        {
            await foreach (KeyValueEntry entry in kv.ScanAsync("accounts/", moment))
            {
                accounts[entry.Key] = entry.Value.AsString();
            }
        }
        catch (KahunaException failure) when (failure.Code == KahunaErrorCode.ScanExpired)
        {
            // A leader changed, or the scan took too long. A part was read; begin again.
            accounts.Clear();
        }
        #endregion
        Assert.Empty(accounts);

        #region batches
        SetResult before = await kv.GetAndSetAsync("config/color", "green");
        BatchResult<SetResult> batch = await kv.SetManyAsync(
            [new("config/a", "1"), new("config/b", "2"), new("config/c", "3", new SetOptions { OnlyIfAbsent = true })]);
        foreach (BatchOutcome<SetResult> item in batch.Items)
        {
            Console.WriteLine(item.Error?.Message ?? $"revision {item.Result.Revision}");
        }
        #endregion

        #region atomic batches
        BatchOptions atomic = new() { Atomic = true };
        BatchResult<GetResult> both = await kv.GetManyAsync(["accounts/ann", "accounts/bob"], atomic);
        BatchResult<SetResult> moved = await kv.SetManyAsync(
            [
                new("accounts/ann", "90", new SetOptions { OnlyIfValue = both[0].Result.Value }),
                new("accounts/bob", "110", new SetOptions { OnlyIfValue = both[1].Result.Value }),
            ],
            atomic);
        Console.WriteLine(moved[0].Result.Applied ? "moved" : "somebody else was first");
        #endregion

        #region delete by prefix
        long gone = await kv.DeleteByPrefixAsync("sessions/old/", progress: new Progress<long>(Console.WriteLine));
        #endregion

        #region transactions
        TransactionResult paid = await client.Transactions
            .If(KeyCondition.HasValue("accounts/ann", "90"), KeyCondition.Exists("accounts/bob"))
            .Then(
                KeyOperation.Increment("accounts/ann", -10),
                KeyOperation.Increment("accounts/bob", 10),
                KeyOperation.Set("accounts/last", "ann to bob", ttl: TimeSpan.FromDays(1)))
            .Else(KeyOperation.Get("accounts/ann"))
            .CommitAsync();
        Console.WriteLine(paid.Succeeded
            ? $"bob has {paid[1].AsIncrement().Value}"
            : $"ann has {paid[0].AsGet().Value.AsString()}");
        #endregion
        #region interactive transactions
        long left = await client.Transactions.RunAsync(async transaction =>
        {
            GetResult stock = await transaction.GetAsync("shop/stock");
            if (stock.Value.AsString() is "0" or null)
            {
                await transaction.RollbackAsync();
                return -1;
            }

            await transaction.SetAsync("shop/last", "a sale");
            return await transaction.IncrementAsync("shop/stock", -1);
        });
        #endregion
        Assert.Equal(-1, left);

        #region unknown transactions
        try
        {
            await client.Transactions.If()
                .Then(KeyOperation.Increment("stock/apples", -1), KeyOperation.Increment("sales/today"))
                .CommitAsync();
        }
        catch (KahunaException unknown) when (unknown is { Outcome: OperationOutcome.Unknown, TransactionId: { } id })
        {
            TransactionOutcome outcome = await client.Transactions.FindOutcomeAsync(id);
            Console.WriteLine(outcome);
        }
        #endregion
        #region pessimistic transactions
        await client.Transactions.RunAsync(
            async transaction =>
            {
                GetResult guests = await transaction.GetForUpdateAsync("show/guests");
                await transaction.SetAsync("show/guests", $"{guests.Value.AsString()} ann");
            },
            new TransactionOptions { Mode = TransactionMode.Pessimistic, Timeout = TimeSpan.FromSeconds(10) });
        #endregion

        #region ranges in transactions
        bool isMine = await client.Transactions.RunAsync(async transaction =>
        {
            await foreach (KeyValueEntry worker in transaction.ScanAsync("workers/"))
            {
                Console.WriteLine($"{worker.Key} is on duty");
                return false;
            }

            await transaction.SetAsync("workers/7/name", "me");
            return true;
        });
        #endregion
        Assert.True(isMine);

        #region watch
        WatchPosition position = await kv.GetPositionAsync();
        await kv.SetAsync("config/color", "red");
        await foreach (WatchEvent change in kv.WatchAsync("config/", new WatchOptions { From = position }))
        {
            Console.WriteLine($"{change.Kind} {change.Key} = {change.Value.AsString()} at revision {change.Revision}");
            position = change.Position ?? position;
            break;
        }
        #endregion
        Assert.NotEqual(await kv.GetPositionAsync(Durability.Ephemeral), position);

        #region cache
        await using KeyValueCache config = await kv.CacheAsync("config/");
        using IDisposable shown = config.OnChange(change => Console.WriteLine($"{change.Key}: {change.After?.Value}"));
        if (config.TryGetValue("config/color", out CacheEntry color))
        {
            Console.WriteLine($"{color.Value.AsString()}, at most {config.Staleness.TotalSeconds:0.0} s old");
        }

        GetResult written = await kv.GetAsync("config/color", new ReadOptions { WithPosition = true });
        await config.WaitForAsync(written.Position!);
        #endregion
        Assert.Equal("red", color.Value.AsString());

        #region conditions
        SetResult created = await kv.SetAsync("jobs/17", "new", new SetOptions { OnlyIfAbsent = true });
        SetResult swapped = await kv.SetAsync(
            "jobs/17", "running", new SetOptions { OnlyIfRevision = created.Revision });
        if (!swapped.Applied)
        {
            Console.WriteLine($"another client was first; the key is at revision {swapped.Revision}");
        }
        #endregion
        Assert.True(created.Applied && swapped.Applied);

        #region time to live
        await kv.SetAsync("session/42", "alice", new SetOptions { Ttl = TimeSpan.FromMinutes(20) });
        ExtendResult extended = await kv.ExtendAsync("session/42", TimeSpan.FromMinutes(20));
        ExtendResult kept = await kv.ExtendAsync("session/42", TimeSpan.Zero);
        #endregion
        Assert.True(extended.Extended && kept.Extended);

        #region in memory
        SetOptions inMemory = new() { Durability = Durability.Ephemeral, Ttl = TimeSpan.FromMinutes(5) };
        await kv.SetAsync("sessions/17", "alice", inMemory);
        GetResult session = await kv.GetAsync("sessions/17", new ReadOptions { Durability = Durability.Ephemeral });
        #endregion
        Assert.Equal("alice", session.Value.AsString());

        #region sequences
        await client.Sequences.CreateAsync("orders", new SequenceDefinition { Initial = 1000 });
        long order = await client.Sequences.NextAsync("orders");
        SequenceOptions import = new() { IdempotencyKey = "import 2026-11-22" };
        SequenceRange block = await client.Sequences.ReserveAsync("orders", 50, import);
        foreach (long number in block.Values)
        {
            Console.WriteLine($"order {number}");
        }
        #endregion
        Assert.Equal((1000, 1001, 1050), (order, block.First, block.Last));

        CancellationToken ct = CancellationToken.None;
        #region locks
        TimeSpan lease = TimeSpan.FromSeconds(15);
        TimeSpan wait = TimeSpan.FromSeconds(30);
        await using (LockHandle handle = await client.Locks.AcquireAsync("orders/17", lease, wait, ct))
        {
            using CancellationTokenSource work = CancellationTokenSource.CreateLinkedTokenSource(ct, handle.LostToken);
            await kv.SetAsync("orders/state", "shipped", new SetOptions { Fence = handle.Fence }, work.Token);
        }
        #endregion
        Assert.Equal("shipped", (await kv.GetAsync("orders/state")).Value.AsString());

        #region more locks
        await using LockHandle? free = await client.Locks.TryAcquireAsync("reports/daily", lease);
        Console.WriteLine(free is null ? "another client has it" : $"mine, under token {free.Token}");

        LockOptions reader = new() { Mode = LockMode.Shared, RenewFor = TimeSpan.FromHours(1) };
        await using LockHandle shared = await client.Locks.AcquireAsync("catalog", lease, wait, reader);
        await using LockHandle permit = await client.Semaphores.AcquireAsync("downloads", 10, lease, wait);
        #endregion
        Assert.NotNull(free);

        #region elections
        await using (Leadership leadership = await client.Elections.CampaignAsync(
            "billing/leader", "node-7:8082", lease))
        {
            await kv.SetAsync("billing/config", "v2", new SetOptions { Fence = leadership.Fence });
        }

        await foreach (LeaderDescription? leader in client.Elections.ObserveAsync("billing/leader"))
        {
            Console.WriteLine(leader is null ? "no leader" : $"{leader.Candidate} leads");
            break;
        }
        #endregion

        #region failures
        try
        {
            await kv.IncrementAsync("stock/7", -1);
        }
        catch (KahunaException failure) when (failure.Outcome == OperationOutcome.Unknown)
        {
            // It may have been applied: look before repeating it.
            GetResult stock = await kv.GetAsync("stock/7");
        }
        catch (KahunaException failure) when (failure.Code == KahunaErrorCode.NotAnInteger)
        {
            Console.WriteLine(failure.Message);
        }
        #endregion

        #region try
        TryIncrementResult attempt = await kv.TryIncrementAsync("config/visits");
        Console.WriteLine(attempt.Applied ? $"{attempt.Value}" : $"{attempt.Status}");
        #endregion
        Assert.Equal(6, attempt.Value);
    }

    private static async Task RunOptionsAsync(string endpoint, string caFile)
    {
        #region options
        KahunaClientOptions options = new()
        {
            RequestTimeout = TimeSpan.FromSeconds(3),
            TrustedCaFile = caFile,
        };
        options.Endpoints.Add(new Uri(endpoint));
        await using KahunaClient configured = new(options);
        #endregion
        await configured.DescribeAsync();

        #region injection
        ServiceCollection services = new();
        services.AddKahuna(options => options.Endpoints.Add(new Uri(endpoint)));
        await using ServiceProvider provider = services.BuildServiceProvider();
        KahunaClient injected = provider.GetRequiredService<KahunaClient>();
        #endregion
        await injected.DescribeAsync();
        await CheckAsync(endpoint);
    }

    private static async Task CheckAsync(string endpoint)
    {
        ServiceCollection services = new();
        services.AddLogging();
        services.AddKahuna(options => options.Endpoints.Add(new Uri(endpoint)));

        #region health
        services.AddHealthChecks().AddKahuna(tags: ["ready"]);
        #endregion

        await using ServiceProvider provider = services.BuildServiceProvider();
        HealthReport report = await provider.GetRequiredService<HealthCheckService>().CheckHealthAsync();
        Assert.Equal(HealthStatus.Healthy, report.Status);
    }

    private static IEnumerable<string> Examples(string page) =>
        Block().Matches(File.ReadAllText(Repository.FullPath($"docs/{page}.md")))
            .Select(static match => match.Groups[1].Value);

    /// <summary>A region as a page shows it: without indentation, and with a reader's addresses.</summary>
    private static string Shown(string region)
    {
        StringBuilder text = new();
        foreach (string line in region.TrimEnd().Split('\n'))
        {
            text.Append(line.Length > 8 ? line[8..] : "").Append('\n');
        }

        return text.ToString()
            .Replace("endpoint)", "\"https://127.0.0.1:8082\")", StringComparison.Ordinal)
            .Replace("(endpoint,", "(\"https://127.0.0.1:8082\",", StringComparison.Ordinal)
            .Replace("caFile", "\"/etc/kahuna/ca.pem\"", StringComparison.Ordinal)
            .Replace("secretFile", "\"/run/secrets/kahuna\"", StringComparison.Ordinal)
            .Replace("tokenFile", "\"/run/secrets/token\"", StringComparison.Ordinal);
    }

    [GeneratedRegex("```csharp\n(.*?)```", RegexOptions.Singleline)]
    private static partial Regex Block();

    [GeneratedRegex(@"#region [a-z ]+\n(.*?) +#endregion", RegexOptions.Singleline)]
    private static partial Regex Region();
}
