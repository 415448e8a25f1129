using System.Globalization;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage;
using Kahuna.Tests.Partitions;
using Kahuna.Tests.Storage;

namespace Kahuna.Tests.Hosting;

/// <summary>Lines that lost their fields on the way once.</summary>
public sealed class ReportedFieldsTests
{
    private readonly List<ReportLine> _lines = [];

    [Fact]
    public void A_log_past_its_limit()
    {
        LogSpace room = new(
            new ModelDisk(), "/data/log", new SegmentedLogOptions { LogLimitBytes = 3 << 20 }, _lines.Add);
        room.CheckLimit(4 << 20);
        Assert.Equal(
            "The log in /data/log has reached its limit of 3 MiB (--log-limit), so writes are refused; reads go on.",
            room.Refusal);
        AssertFields(room.Refusal!, "Directory=/data/log", "LimitMiB=3");
    }

    [Fact]
    public void A_disk_that_hangs_and_moves()
    {
        LoopOptions options = new()
        {
            Self = new NodeId(1),
            Voters = [new NodeId(1)],
            PreferredLeader = static _ => new NodeId(1),
            Seed = 1,
        };
        LoopPorts ports = new ModelCluster(1)[1].Ports! with { Report = _lines.Add };
        LogWatch watch = new(options, loop: 3, ports, ports.Log.OpenWriter(null!));
        for (int tick = 0; tick <= options.ElectionTicks; tick++)
        {
            watch.Tick(submitted: 1, persisted: 0);
        }

        AssertFields(
            "Loop 3: the log's disk has not finished a write for 800 ms. This node hands its leaderships over "
                + "and seeks none until it does.",
            "Loop=3",
            "StalledMs=800");
        _lines.Clear();
        watch.Tick(submitted: 1, persisted: 1);
        AssertFields("Loop 3: the log's disk moves again.", "Loop=3");
    }

    private void AssertFields(string text, params string[] fields)
    {
        ReportLine line = Assert.Single(_lines);
        Assert.Equal(text, line.ToString());
        Assert.Equal(
            fields,
            line.SkipLast(1)
                .Select(field => string.Create(CultureInfo.InvariantCulture, $"{field.Key}={field.Value}")));
    }
}
