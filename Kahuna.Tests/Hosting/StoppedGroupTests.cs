using System.Text.Json;
using Kahuna.Server.Api.Watches;
using Kahuna.Server.Cluster;
using Kahuna.Server.Hosting;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.KeyValues;
using Kahuna.Tests.Hosting.Membership;
using Kahuna.Tests.Partitions;

namespace Kahuna.Tests.Hosting;

/// <summary>
/// What an operator sees of a group that has stopped and of a disk that does not move: in <c>/status</c>, and at the
/// end of the process.
/// </summary>
public sealed class StoppedGroupTests
{
    private readonly ClusterView _view = new(new ClusterIdentity("test", new NodeId(1), "1", 2, [(new NodeId(1), new Uri("https://127.0.0.1:1"))]), hasEphemeral: true);

    [Fact]
    public async Task Status_tells_why_a_group_has_stopped_and_that_the_log_does_not_move()
    {
        int slot = _view.Layout.IndexOf(1, isEphemeral: true);
        Stop(0, "a rule is broken");
        Stop(slot, "another rule is broken");
        using Directories directories = new();
        await using NodeStorage storage = await NodeStorage.OpenAsync(
            directories.Options(1),
            DataDirectoryIdentity.Open(directories.Options(1)),
            RethrownErrors.Shared,
            static _ => { });
        using JsonDocument status = JsonDocument.Parse(StatusEndpoint.Render(
            _view,
            static slot => PartitionMetrics.None with
            {
                IsStalled = slot == 1,
                Prepared = new PreparedCounts(slot, 2, 3, 4),
            },
            storage,
            (0, 0),
            new WatchHub(new ChangeLogs(_view.Layout, 1), static () => default, new ReplyRoom())));
        Assert.Equal(0, status.RootElement.GetProperty("watches").GetProperty("streams").GetInt32());
        JsonElement[] persistent = [.. status.RootElement.GetProperty("partitions").EnumerateArray()];
        JsonElement[] ephemeral = [.. status.RootElement.GetProperty("ephemeralPartitions").EnumerateArray()];
        Assert.Equal(
            ["a rule is broken", null], persistent.Select(static group => group.GetProperty("stopped").GetString()));
        Assert.Equal(
            [null, "another rule is broken"],
            ephemeral.Select(static group => group.GetProperty("stopped").GetString()));
        Assert.Equal([false, true], persistent.Select(static group => group.GetProperty("logStalled").GetBoolean()));
        Assert.Equal([0, 1], persistent.Select(static group =>
            group.GetProperty("transactions").GetProperty("prepared").GetInt32()));
        Assert.Equal([false, false], ephemeral.Select(static group => group.GetProperty("logStalled").GetBoolean()));
        Assert.False(status.RootElement.GetProperty("ready").GetBoolean());
        Assert.Contains(
            "has stopped on an internal error",
            status.RootElement.GetProperty("reason").GetString(),
            StringComparison.Ordinal);
    }

    [Fact]
    public void Process_in_which_a_group_had_stopped_ends_with_the_reason_and_exit_code_1()
    {
        using StringWriter errors = new();
        Assert.Equal(0, ServerProcess.CodeAfterStop(_view, errors));
        Assert.Empty(errors.ToString());
        Stop(1, "a rule is broken");

        // What follows from it is not the reason.
        Stop(1, "something that follows");
        Assert.Equal(1, ServerProcess.CodeAfterStop(_view, errors));
        Assert.Equal("kahuna-server: a rule is broken" + Environment.NewLine, errors.ToString());
    }

    private void Stop(int slot, string reason) =>
        ((ILeadershipSink)_view).PartitionFailed(slot, new InvariantException(reason));
}
