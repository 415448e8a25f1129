using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage;
using Kahuna.Server.Storage.Disk;
using Kahuna.Wire.Buffers;

namespace Kahuna.Tests.Storage;

/// <summary>From append to report, nothing is allocated once the buffers have their sizes.</summary>
public sealed class LogAllocationTests
{
    [Fact]
    public void AppendSubmitCommitAndReportAllocateNothing()
    {
        using TemporaryDirectory directory = new();
        SegmentedLog log = SegmentedLog.Open(directory.Path, new SegmentedLogOptions(), new PosixDisk());
        QuietSink sink = new();
        ILogWriter first = log.OpenWriter(sink);
        ILogWriter second = log.OpenWriter(sink);
        byte[] entries = LogFixture.Entries(1, "some payload", "another payload");
        ulong index = 1;

        void Turn()
        {
            for (int i = 0; i < 4; i++)
            {
                first.Append(new GroupId(1), new LogIndex(index), 2, entries);
                first.Save(new GroupId(1), new HardState(new Term(1), new NodeId(1), new LogIndex(index)));
                first.Submit();
                second.Append(new GroupId(2), new LogIndex(index), 2, entries);
                second.Submit();
                index += 2;
            }

            log.CommitOnce();
        }

        for (int i = 0; i < 20; i++)
        {
            Turn();
        }

        long allocated = AllocatedBytes.LeastOf(() =>
        {
            for (int i = 0; i < 12; i++)
            {
                Turn();
            }
        });
        Assert.Equal(0, allocated);
        Assert.Equal(160, sink.Reports);
        log.Close();
    }

    /// <summary>Counts and forgets.</summary>
    private sealed class QuietSink : ILogSink
    {
        public int Reports { get; private set; }

        public void Persisted(ulong batch) => Reports++;

        public void Fetched(GroupId group, NodeId follower, LogIndex first, ByteBuffer entries) => entries.Return();

        public void Failed(Exception error) => throw error;
    }
}
