using System.Diagnostics;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage;
using Kahuna.Tests.Partitions;
using Kahuna.Wire.Buffers;

namespace Kahuna.Tests.Tools.Serial;

/// <summary>
/// The shipped log on the machine's disk, with a sync for each batch: what one log can do at most. As from a loop, an
/// entry has the writes of all callers, and one batch is submitted while the one before is synced. One thread.
/// </summary>
internal sealed class LoneLog : ILogSink, IAsyncDisposable
{
    /// <summary>A set of 128 bytes with its key, its session and its number.</summary>
    public const int CommandBytes = 192;

    /// <summary>Entries after which the log may let go of the older ones.</summary>
    private const int KeptEntries = 1_000;

    private static readonly GroupId s_group = new(1);

    private readonly SemaphoreSlim _stored = new(0);
    private readonly ThreadedLog _log;
    private readonly ILogWriter _writer;
    private readonly int _callers;
    private ulong _next = 1;
    private ulong _reached;

    /// <param name="directory">Where the log lies.</param>
    /// <param name="callers">Writes of an entry.</param>
    public LoneLog(string directory, int callers)
    {
        _callers = callers;
        _log = ThreadedLog.Open(directory, new SegmentedLogOptions(), RethrownErrors.Shared);
        _writer = _log.OpenWriter(this);
    }

    /// <summary>Time of one write, in ns, over as many of them.</summary>
    public double Run(int operations)
    {
        int entries = Math.Max(1, operations / _callers);
        int payload = _callers * CommandBytes;
        long began = Stopwatch.GetTimestamp();
        ulong last = 0;
        for (int i = 0; i < entries; i++)
        {
            Span<byte> entry = _writer.BeginAppend(
                s_group, new LogIndex(_next), 1, EntryCodec.HeaderBytes + payload);
            EntryCodec.WriteHeader(entry, new Term(1), EntryKind.Commands, default, payload);
            entry[EntryCodec.HeaderBytes..].Fill((byte)_next);
            _writer.EndAppend();
            last = _writer.Submit();
            Await(last - 1);
            if (_next++ % KeptEntries == 0)
            {
                _log.Release(s_group, new LogIndex(_next - KeptEntries));
            }
        }

        Await(last);
        return Stopwatch.GetElapsedTime(began).TotalNanoseconds / (entries * (double)_callers);
    }

    /// <inheritdoc/>
    public void Persisted(ulong batch)
    {
        Volatile.Write(ref _reached, batch);
        _stored.Release();
    }

    /// <inheritdoc/>
    public void Fetched(GroupId group, NodeId follower, LogIndex first, ByteBuffer entries) => entries.Return();

    /// <inheritdoc/>
    public void Failed(Exception error) => throw new InvalidOperationException(error.Message, error);

    /// <inheritdoc/>
    public async ValueTask DisposeAsync()
    {
        await _log.DisposeAsync();
        _stored.Dispose();
    }

    private void Await(ulong batch)
    {
        while (Volatile.Read(ref _reached) < batch)
        {
            _stored.Wait();
        }
    }
}
