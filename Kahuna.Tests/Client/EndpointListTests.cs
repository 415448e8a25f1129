using Kahuna.Client;
using Kahuna.Client.DependencyInjection;
using Microsoft.Extensions.Configuration;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Options;

namespace Kahuna.Tests.Client;

/// <summary>Endpoints as an application's configuration has them.</summary>
public sealed class EndpointListTests
{
    [Fact]
    public void One_text_is_read_as_a_list() => AssertRead(new() { ["Kahuna:Endpoints"] = "https://a:8082, https://b:8084" });

    [Fact]
    public void A_list_is_read_as_one() => AssertRead(new() { ["Kahuna:Endpoints:0"] = "https://a:8082", ["Kahuna:Endpoints:1"] = "https://b:8084" });

    [Fact]
    public void What_is_no_address_is_named()
    {
        InvalidOperationException failure = Assert.Throws<InvalidOperationException>(() => Read(new() { ["Kahuna:Endpoints"] = "https://a:8082,nonsense" }));
        Assert.Contains("\"nonsense\" is not an address of the form https://host:port", failure.InnerException!.Message, StringComparison.Ordinal);
    }

    private static void AssertRead(Dictionary<string, string?> settings)
    {
        KahunaClientOptions options = Read(settings);
        Assert.Equal([new Uri("https://a:8082"), new Uri("https://b:8084")], options.Endpoints);
        Assert.Equal(TimeSpan.FromSeconds(3), options.RequestTimeout);
    }

    private static KahunaClientOptions Read(Dictionary<string, string?> settings)
    {
        settings["Kahuna:RequestTimeout"] = "00:00:03";
        IConfigurationRoot configuration = new ConfigurationBuilder().AddInMemoryCollection(settings).Build();
        ServiceCollection services = new();
        services.AddKahuna(options => configuration.GetSection("Kahuna").Bind(options));
        using ServiceProvider provider = services.BuildServiceProvider();
        return provider.GetRequiredService<IOptions<KahunaClientOptions>>().Value;
    }
}
