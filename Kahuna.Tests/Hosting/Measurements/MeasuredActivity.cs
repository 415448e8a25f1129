using System.Net.Http.Headers;
using System.Text;
using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Locks;
using Kahuna.Client.Watches;
using Kahuna.Server.Hosting;
using Kahuna.Tests.Api.Grpc;
using Kahuna.Tests.Client;

namespace Kahuna.Tests.Hosting.Measurements;

/// <summary>Does something of everything, so that every metric of a cluster has a series. Owned by one test.</summary>
internal sealed class MeasuredActivity : IAsyncDisposable
{
    private readonly CancellationTokenSource _stop = new();
    private readonly KahunaClient _client;
    private readonly Task _watching;

    private MeasuredActivity(KahunaClient client)
    {
        _client = client;
        _watching = WatchAsync();
    }

    /// <summary>Begins, and returns when everything was done once. A watch stays open until it is disposed.</summary>
    /// <param name="cluster">The cluster.</param>
    /// <param name="header">Signs in; null: nobody has to.</param>
    /// <param name="credentials">The same for the client.</param>
    public static async Task<MeasuredActivity> BeginAsync(
        EmbeddedCluster cluster, string? header = null, KahunaCredentials? credentials = null)
    {
        KahunaClient client = PatientClient.Connect(cluster.Endpoints, options =>
        {
            options.Credentials = credentials;
            options.RequestTimeout = LastNet.Call;
        });
        MeasuredActivity activity = new(client);
        await activity.RepeatAsync();
        await RefusedAsync(cluster.Nodes[0].Options.Advertise, header);
        return activity;
    }

    /// <summary>Does everything once more.</summary>
    public async Task RepeatAsync()
    {
        await _client.KeyValues.SetAsync("a/b", "1");
        await _client.KeyValues.GetAsync("a/b", new ReadOptions { Durability = Durability.Ephemeral });
        TimeSpan minute = TimeSpan.FromMinutes(1);
        LockHandle first = await _client.Locks.AcquireAsync("jobs", minute, LastNet.Call);
        Task<LockHandle> second = _client.Locks.AcquireAsync("jobs", minute, LastNet.Call).AsTask();
        await first.DisposeAsync();
        await (await second.WaitAsync(Wait.Longest)).DisposeAsync();
    }

    public async ValueTask DisposeAsync()
    {
        await _stop.CancelAsync();
        await _watching;
        await _client.DisposeAsync();
        _stop.Dispose();
    }

    /// <summary>A request that no partition gets to see.</summary>
    private static async Task RefusedAsync(Uri node, string? header)
    {
        using HttpMessageInvoker invoker = RawHttp.AnyServer();
        using HttpRequestMessage request = new(HttpMethod.Put, new Uri(node, "/v1/kv/a"))
        {
            Content = new StringContent(
                """{"durability":"DURABILITY_PERSISTENT","value":{"data":"MQ=="},"ttlMs":"-5"}""",
                Encoding.UTF8,
                "application/json"),
        };
        if (header is not null)
        {
            request.Headers.Authorization = AuthenticationHeaderValue.Parse(header);
        }

        using HttpResponseMessage response = await invoker.SendAsync(request, CancellationToken.None);
        Assert.Equal(System.Net.HttpStatusCode.BadRequest, response.StatusCode);
    }

    private async Task WatchAsync()
    {
        try
        {
            await foreach (WatchEvent _ in _client.KeyValues.WatchAsync("a/", null, _stop.Token))
            {
            }
        }
        catch (OperationCanceledException)
        {
            // The test is over.
        }
    }
}
