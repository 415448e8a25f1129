using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using System.Text.Json;
using Kahuna.Cli.Errors;
using Kahuna.Tests.Client;
using Kahuna.Tests.Hosting;

namespace Kahuna.Tests.Cli;

/// <summary>What the tool shows of the cluster and its users, on a real cluster.</summary>
[Collection(CliClusterCollection.Name)]
public sealed class ClusterCommandTests(CliCluster cluster) : IDisposable
{
    private readonly CliTool _tool = cluster.Tool();
    private readonly TemporaryDirectory _directory = new();

    public void Dispose() => _directory.Dispose();

    [Fact]
    public async Task The_state_of_all_nodes_is_shown()
    {
        CliResult status = await UntilAsync(_tool, ExitCode.Done, "status", "-o", "json");
        JsonElement[] nodes = [.. status.Json.EnumerateArray()];
        Assert.Equal([1, 2, 3], nodes.Select(static node => node.GetProperty("node").GetInt32()));
        Assert.All(nodes, static node => Assert.True(node.GetProperty("ready").GetBoolean()));
        Assert.All(nodes, static node => Assert.True(node.GetProperty("memory").GetInt64() > 0));
        Assert.Equal(3, (await _tool.RunAsync("members", "-o", "json")).Done().Json.GetArrayLength());
        Assert.Equal(2, (await _tool.RunAsync("partitions", "-o", "json")).Done().Json.GetArrayLength());
        JsonElement leaders = (await _tool.RunAsync("leaders", "-o", "json")).Done().Json;
        Assert.Equal(2, leaders.EnumerateArray().Sum(static node => node.GetProperty("leads").GetInt32()));
        string[] top = (await _tool.RunAsync("top", "--count", "2", "--interval", "10ms", "-o", "jsonl")).Done().Output
            .Split('\n', StringSplitOptions.RemoveEmptyEntries);
        Assert.Equal(6, top.Length);
        Assert.All(top, static line => Assert.Contains("\"commitsPerSecond\":", line, StringComparison.Ordinal));
    }

    [Fact]
    public async Task The_doctor_finds_a_healthy_cluster_healthy_and_says_what_is_wrong_with_another()
    {
        CliResult healthy = await UntilAsync(_tool, ExitCode.Done, "doctor", "-o", "json");
        Assert.Equal(
            "reachable, identity, version, feature level, ready, leader, disk, limits, certificate, clock, "
                + "authentication",
            string.Join(", ", TextsOf(healthy.Json, "check").Distinct()));
        Assert.DoesNotContain("problem", TextsOf(healthy.Json, "state"));
        CliTool nobody = cluster.Tool(user: null);
        string[] nowhere = ["-c", "https://127.0.0.1:1", "--timeout", "5s", "-o", "json"];
        CliResult unreachable = (await nobody.RunAsync(["doctor", .. nowhere])).Ended(ExitCode.NotThere);
        Assert.Equal("reachable", Assert.Single(unreachable.Json.EnumerateArray()).GetProperty("check").GetString());
        (await nobody.RunAsync("doctor")).Ended(ExitCode.NotThere).Shows("administrators");
    }

    [Fact]
    public async Task Whoever_may_not_is_told_what_is_missing()
    {
        CliTool ann = cluster.Tool("ann");
        Assert.Equal("ann", (await ann.RunAsync("whoami", "-o", "json")).Done().Json.GetProperty("user").GetString());
        (await ann.RunAsync("set", "ann/x", "1")).Done();
        (await ann.RunAsync("set", "bob/x", "1")).Ended(ExitCode.Denied).Tells("write");
        (await ann.RunAsync("user", "list")).Ended(ExitCode.Denied);
        await UntilAsync(ann, ExitCode.Denied, "status");
        await UntilAsync(ann, ExitCode.Denied, "top", "--count", "1");
        CliTool nobody = cluster.Tool(user: null);
        (await nobody.RunAsync("get", "ann/x")).Ended(ExitCode.Denied).Tells("--user");
        (await nobody.RunAsync("get", "ann/x", "--user", "ann")).Ended(ExitCode.Usage).Tells("terminal");
        nobody.Typed.Enqueue("annann");
        Assert.Equal("1", (await nobody.RunAsync("get", "ann/x", "--user", "ann")).Done().Output);
        nobody.Typed.Enqueue("wrong password");
        (await nobody.RunAsync("get", "ann/x", "--user", "ann")).Ended(ExitCode.Denied);
    }

    [Fact]
    public async Task Users_roles_and_tokens_are_administered()
    {
        // A change holds at once on the node that made it, and on the others within a second.
        _tool.Variables["KAHUNA_ENDPOINTS"] = cluster.Endpoints.Split(',')[0];
        string[] grants = ["--grant", "read,watch:prefix/persistent:app:1/", "--grant", "data:bucket:shop"];
        (await _tool.RunAsync(["role", "put", "reader", .. grants])).Done();
        JsonElement role = (await UntilAsync(_tool, ExitCode.Done, "role", "get", "reader", "-o", "json")).Json;
        Assert.Equal(
            ["read,watch:prefix/persistent:app:1/", "data:bucket:shop"],
            role.GetProperty("grants").EnumerateArray().Select(static grant => grant.GetString()));
        (await _tool.RunAsync("role", "list")).Done().Shows("reader");
        _tool.Typed.Enqueue("a long password");
        _tool.Typed.Enqueue("a long password");
        (await _tool.RunAsync("user", "create", "eve", "--role", "reader", "--quota-keys", "9")).Done();
        (await _tool.RunAsync("user", "create", "eve", "--no-password")).Ended(ExitCode.NotThere);
        _tool.Typed.Enqueue("a long password");
        _tool.Typed.Enqueue("another one");
        (await _tool.RunAsync("user", "create", "sue")).Ended(ExitCode.Usage);
        (await _tool.RunAsync("user", "update", "eve", "--quota-bytes", "1000", "--disabled", "false")).Done();
        JsonElement user = (await UntilAsync(_tool, ExitCode.Done, "user", "get", "eve", "-o", "json")).Json;
        JsonElement quota = user.GetProperty("quota");
        Assert.Equal((9, 1000), (quota.GetProperty("keys").GetInt32(), quota.GetProperty("bytes").GetInt32()));
        (await _tool.RunAsync("user", "list")).Done().Shows("eve");
        string secret = Path.Combine(_directory.Path, "eve.token");
        string[] create = ["token", "create", "eve", "--lifetime", "1h", "--secret-file", secret];
        string id = (await _tool.RunAsync([.. create, "-o", "json"])).Done().Json.GetProperty("id").GetString()!;
        Assert.True(CliTool.IsForItsOwner(secret));
        (await _tool.RunAsync(create)).Ended(ExitCode.Usage);
        CliTool eve = cluster.Tool(user: null);
        (await UntilAsync(eve, ExitCode.Done, "whoami", "--token-file", secret)).Shows("eve");
        (await _tool.RunAsync("token", "list", "eve")).Done().Shows(id);
        (await _tool.RunAsync("token", "delete", id)).Done();
        (await _tool.RunAsync("role", "delete", "reader")).Ended(ExitCode.Refused);
        (await _tool.RunAsync("user", "update", "eve", "--role", "", "--rename", "eva")).Done();
        (await _tool.RunAsync("role", "delete", "reader")).Done();
        (await _tool.RunAsync("user", "delete", "eva")).Done();
        await UntilAsync(_tool, ExitCode.NotThere, "user", "get", "eva");
        (await _tool.RunAsync("role", "put", "odd", "--grant", "fly:prefix:")).Ended(ExitCode.Usage);
        (await _tool.RunAsync("role", "put", "odd", "--grant", "read:planet:x")).Ended(ExitCode.Usage);
    }

    [Fact]
    public async Task A_certificate_that_is_not_trusted_is_told_with_the_option_for_it()
    {
        string other = Path.Combine(_directory.Path, "other.pem");
        using RSA key = RSA.Create(2048);
        CertificateRequest request = new(
            "CN=other", key, HashAlgorithmName.SHA256,
            RSASignaturePadding.Pkcs1);
        using X509Certificate2 authority =
            request.CreateSelfSigned(DateTimeOffset.UtcNow.AddDays(-1), DateTimeOffset.UtcNow.AddDays(1));
        await File.WriteAllTextAsync(other, authority.ExportCertificatePem());
        CliResult refused = (await _tool.RunAsync("get", "x", "--trusted-ca", other)).Ended(ExitCode.Unavailable);
        Assert.Contains("--trusted-ca", refused.Error, StringComparison.Ordinal);
        Assert.DoesNotContain("TrustedCaFile", refused.Error, StringComparison.Ordinal);
        (await _tool.RunAsync("exists", "x", "--trusted-ca", other, "--insecure")).Ended(ExitCode.Usage)
            .Tells("--insecure and --trusted-ca contradict");
        _tool.Variables["KAHUNA_TRUSTED_CA"] = other;
        (await _tool.RunAsync("exists", "x")).Ended(ExitCode.Unavailable);
        (await _tool.RunAsync("exists", "x", "--insecure")).Ended(ExitCode.NotThere);
        string two = string.Join(',', cluster.Endpoints.Split(',').Take(2));
        (await _tool.RunAsync("doctor", "--trusted-ca", other, "-c", two)).Ended(ExitCode.NotThere).Tells("2 problems");
    }

    /// <summary>A node that stood still is not ready, and refuses users, for a while.</summary>
    [Fact]
    public async Task Leaderships_are_moved_one_by_one_by_node_and_back()
    {
        JsonElement[] moved = [.. (await MoveAsync("transfer", "1", "--to", "3")).EnumerateArray()];
        Assert.Equal(["persistent", "ephemeral"], moved.Select(static row => row.GetProperty("group").GetString()));
        Assert.All(moved, static row => Assert.Equal(3, row.GetProperty("leader").GetInt32()));
        JsonElement left = await MoveAsync("transfer", "--from", "3");
        Assert.All(left.EnumerateArray(), static row => Assert.NotEqual(3, row.GetProperty("leader").GetInt32()));
        Assert.Empty((await MoveAsync("transfer", "--from", "3")).EnumerateArray());
        Assert.Equal(5, (await MoveAsync("transfer", "--all")).GetArrayLength());
        await Wait.UntilAsync(async () => (await _tool.RunAsync("leaders", "-o", "json")).Json.EnumerateArray()
            .Select(static node => node.GetProperty("leads").GetInt32()).SequenceEqual([2, 0, 0]));

        CliTool ann = cluster.Tool("ann");
        await UntilAsync(ann, ExitCode.Denied, "transfer", "0");
        (await _tool.RunAsync("transfer")).Ended(ExitCode.Usage).Tells("--from");
        (await _tool.RunAsync("transfer", "0", "--all")).Ended(ExitCode.Usage).Tells("one of");
        (await _tool.RunAsync("transfer", "--all", "--to", "1")).Ended(ExitCode.Usage).Tells("--to");
        (await _tool.RunAsync("transfer", "7")).Ended(ExitCode.Usage).Tells("There is no partition 7");
        (await _tool.RunAsync("transfer", "meta", "--to", "9")).Ended(ExitCode.Usage).Tells("not a member");
        (await _tool.RunAsync("transfer", "one")).Ended(ExitCode.Usage).Tells("'one'");
    }

    /// <summary>On a machine that stands still a node may not take leadership in time.</summary>
    private async Task<JsonElement> MoveAsync(params string[] words) =>
        (await UntilAsync(_tool, ExitCode.Done, [.. words, "-o", "json"])).Json;

    private static async Task<CliResult> UntilAsync(CliTool tool, int exitCode, params string[] words)
    {
        CliResult result = await tool.RunAsync(words);
        await Wait.UntilAsync(async () =>
        {
            result = result.ExitCode == exitCode ? result : await tool.RunAsync(words);
            return result.ExitCode == exitCode;
        });
        return result;
    }

    private static IEnumerable<string?> TextsOf(JsonElement list, string field) =>
        list.EnumerateArray().Select(item => item.GetProperty(field).GetString());
}
