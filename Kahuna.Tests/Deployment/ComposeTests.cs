using Kahuna.Server.Hosting;
using Kahuna.Server.Hosting.Administration;
using Kahuna.Server.Hosting.Options;
using Kahuna.Tests.Tidy;
using YamlDotNet.Core;

namespace Kahuna.Tests.Deployment;

/// <summary>The compose file has only known fields, and each of its services is a node of one cluster.</summary>
public sealed class ComposeTests
{
    private static readonly ComposeFile s_file = ComposeFile.Parse(Deployed.Text("compose/compose.yaml"));

    [Fact]
    public void A_field_that_is_none_is_found() =>
        Assert.Throws<YamlException>(() => ComposeFile.Parse(
            Deployed.Text("compose/compose.yaml").Replace("read_only:", "readonly:", StringComparison.Ordinal)));

    [Fact]
    public void Each_service_is_a_node()
    {
        using ClusterFiles files = new("deploy/compose/secrets");
        int id = 0;
        foreach ((string name, ComposeService service) in s_file.Services)
        {
            id++;
            Dictionary<string, string> places = service.Volumes
                .Where(static volume => volume.StartsWith("./secrets/", StringComparison.Ordinal))
                .Select(static volume => volume.Split(':'))
                .ToDictionary(static parts => parts[1], parts => files[parts[0]["./secrets/".Length..]]);
            Assert.All(places.Values, static path => Assert.True(File.Exists(path), path));
            NodeOptions options = ClusterFiles.Accepted([], service.Environment, places);
            Assert.Equal(id, options.NodeId.Value);
            Assert.Equal(name, options.Advertise.Host);
            Assert.Equal(name, service.Hostname);
            int port = options.Advertise.Port;
            Assert.Equal($"127.0.0.1:{port}:{port}", Assert.Single(service.Ports));
            Assert.Equal($"data-{id}:{ImageTests.Data}", service.Volumes[0]);
            Assert.Contains($"data-{id}", s_file.Volumes.Keys);
        }

        Assert.Equal(3, id);
    }

    [Fact]
    public void Services_have_no_rights_and_time_to_stop() => Assert.All(s_file.Services.Values, static service =>
    {
        Assert.Equal($"kahuna-server:{Deployed.Version}", service.Image);
        Assert.True(service.ReadOnly);
        Assert.Equal(["ALL"], service.CapDrop);
        Assert.Equal(["no-new-privileges:true"], service.SecurityOpt);
        Assert.True(int.Parse(service.StopGracePeriod.TrimEnd('s'), null) > 3 * KahunaNode.DrainLimit.TotalSeconds);
        Assert.True(Repository.Exists(service.Build["dockerfile"]));
        Assert.Equal(["CMD", ImageTests.Program, HealthCommand.Name], service.Healthcheck.Test);
    });
}
