using Kahuna.Tests.Access;

namespace Kahuna.Tests.Hosting.Page;

/// <summary>A browser before three nodes with users. Owned by the collection; one test at a time.</summary>
public sealed class PageBrowser : Chromium, IAsyncLifetime
{
    private readonly AccessCluster _cluster = new();

    internal AccessCluster Cluster => _cluster;

    public async Task InitializeAsync()
    {
        await _cluster.InitializeAsync();
        await StartAsync("chromium-headless-shell");
    }

    public async Task DisposeAsync()
    {
        Dispose();
        await _cluster.DisposeAsync();
    }

    /// <summary>Opens the page of a node of the cluster, and signs in.</summary>
    internal async Task SignInAsync(
        string user, string view = "", int width = 1_200, bool isDark = false, int node = 0)
    {
        await Cluster.KnownEverywhereAsync();
        Open(Cluster.Embedded.Nodes[node].Options.Advertise, view, width, isDark);
        await EnterAsync(user, user + user);
        await DoneAsync(
            () => IsShown("session"),
            () =>
            {
                Type("password", user + user);
                Click("enter");
            });
    }
}

/// <summary>Tests with the browser, not beside others: it and three nodes need the machine.</summary>
[CollectionDefinition(Name, DisableParallelization = true)]
public sealed class PageBrowserCollection : ICollectionFixture<PageBrowser>
{
    public const string Name = "Page";
}
