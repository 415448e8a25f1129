using Kahuna.Client;
using Kahuna.Client.Connection;
using Kahuna.Client.DependencyInjection;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Options;

namespace Kahuna.Tests.Client;

public sealed class ClientOptionsTests
{
    [Theory]
    [InlineData("", "no endpoint is given")]
    [InlineData(" , ", "no endpoint is given")]
    [InlineData("localhost:8082", "endpoint \"localhost:8082\" ")]
    [InlineData("http://a:8082", "endpoint \"http://a:8082/\" does not begin with https://")]
    [InlineData("https://a:8082/path", "endpoint \"https://a:8082/path\" has more than a host and a port")]
    [InlineData("https://user@a:8082", "has more than a host and a port")]
    [InlineData("https://a:8082,nonsense", "endpoint \"nonsense\" is not an address of the form https://host:port")]
    public void Bad_endpoints_are_refused(string endpoints, string sentence)
    {
        ArgumentException refusal = Assert.Throws<ArgumentException>(() => KahunaClient.Connect(endpoints));
        Assert.Contains(sentence, refusal.Message, StringComparison.Ordinal);
    }

    [Fact]
    public async Task Good_endpoints_are_taken_without_any_connection()
    {
        await using KahunaClient client = KahunaClient.Connect("https://a:8082, https://b:8084/ ,https://[::1]:8086");
        Assert.NotNull(client.KeyValues);
    }

    [Fact]
    public void All_errors_are_told_at_once()
    {
        ArgumentException refusal = Assert.Throws<ArgumentException>(() => KahunaClient.Connect("http://a:1,nonsense", Spoil));
        Assert.All(
            [
                "http://a:1/", "nonsense", nameof(KahunaClientOptions.RequestTimeout), nameof(KahunaClientOptions.ConnectTimeout), nameof(KahunaClientOptions.RetryBackoffMin),
                nameof(KahunaClientOptions.RetryBackoffMax),
                nameof(KahunaClientOptions.MaxInFlight),
                nameof(KahunaClientOptions.Durability),
                nameof(KahunaClientOptions.TimeProvider),
                nameof(KahunaClientOptions.TrustedCaFile),
                nameof(KahunaClientOptions.ReconnectBackoffMax),
                nameof(KahunaClientOptions.KeepAliveInterval),
                nameof(KahunaClientOptions.KeepAliveTimeout), nameof(KahunaClientOptions.MaxWaiting),
            ],
            name => Assert.Contains(name, refusal.Message, StringComparison.Ordinal));
    }

    [Fact]
    public void A_connection_is_kept_alive_and_dialed_as_the_options_say()
    {
        KahunaClientOptions options =
            new() { KeepAliveInterval = TimeSpan.FromSeconds(7), KeepAliveTimeout = TimeSpan.FromSeconds(2) };
        using SocketsHttpHandler made = new GrpcFrameChannel(options.ToSettings()).HandlerFor(new Uri("https://a:1"));
        Assert.Equal(
            (TimeSpan.FromSeconds(7), TimeSpan.FromSeconds(2)), (made.KeepAlivePingDelay, made.KeepAlivePingTimeout));
        Assert.NotNull(made.ConnectCallback);
    }

    [Fact]
    public async Task Registers_one_client_that_the_container_disposes()
    {
        ServiceCollection services = new();
        services.AddKahuna(options => options.Endpoints.Add(new Uri("https://127.0.0.1:9")));
        ServiceProvider provider = services.BuildServiceProvider();
        KahunaClient client = provider.GetRequiredService<KahunaClient>();
        Assert.Same(client, provider.GetRequiredService<KahunaClient>());
        await provider.DisposeAsync();
        await Assert.ThrowsAsync<ObjectDisposedException>(() => Wait.ForAsync(client.KeyValues.GetAsync("k")));
    }

    [Fact]
    public void Options_that_cannot_be_used_are_refused_by_the_container_with_all_errors()
    {
        ServiceCollection services = new();
        services.AddKahuna(options =>
        {
            options.Endpoints.Add(new Uri("http://a:1"));
            Spoil(options);
        });
        using ServiceProvider provider = services.BuildServiceProvider();
        OptionsValidationException refusal = Assert.Throws<OptionsValidationException>(
            () => provider.GetRequiredService<KahunaClient>());
        Assert.Equal(13, refusal.Failures.Count());
    }

    private static void Spoil(KahunaClientOptions options)
    {
        options.RequestTimeout = TimeSpan.Zero;
        options.ConnectTimeout = TimeSpan.FromHours(1);
        options.RetryBackoffMin = TimeSpan.FromMinutes(2);
        options.RetryBackoffMax = TimeSpan.FromSeconds(1);
        options.ReconnectBackoffMax = TimeSpan.FromMilliseconds(1);
        options.KeepAliveInterval = TimeSpan.Zero;
        options.KeepAliveTimeout = TimeSpan.FromHours(1);
        options.MaxInFlight = 100_000;
        options.MaxWaiting = -1;
        options.Durability = 0;
        options.TimeProvider = null!;
        options.Insecure = true;
        options.TrustedCaFile = "missing.pem";
    }
}
