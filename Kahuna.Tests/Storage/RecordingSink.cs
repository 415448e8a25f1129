using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Buffers;

namespace Kahuna.Tests.Storage;

/// <summary>Records the log's reports. Any thread.</summary>
internal sealed class RecordingSink : ILogSink
{
    private readonly Lock _lock = new();
    private readonly List<ulong> _persisted = [];
    private readonly List<byte[]> _fetched = [];

    public List<Exception> Failures { get; } = [];

    /// <summary>Every report, in order.</summary>
    public ulong[] Reports
    {
        get
        {
            lock (_lock)
            {
                return [.. _persisted];
            }
        }
    }

    public ulong Last => Reports.LastOrDefault();

    public byte[][] Answers
    {
        get
        {
            lock (_lock)
            {
                return [.. _fetched];
            }
        }
    }

    public void Persisted(ulong batch)
    {
        lock (_lock)
        {
            _persisted.Add(batch);
        }
    }

    public void Fetched(GroupId group, NodeId follower, LogIndex first, ByteBuffer entries)
    {
        lock (_lock)
        {
            _fetched.Add(entries.Written.ToArray());
        }

        entries.Return();
    }

    public void Failed(Exception error)
    {
        lock (_lock)
        {
            Failures.Add(error);
        }
    }
}
