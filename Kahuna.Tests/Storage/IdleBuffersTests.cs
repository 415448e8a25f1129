using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage;

namespace Kahuna.Tests.Storage;

/// <summary>Batches reuse buffers. The log drops those that have been idle since the load fell.</summary>
public sealed class IdleBuffersTests
{
    private const int Batches = 20;
    private readonly LogFixture _fixture = new LogFixture(segmentBytes: 8 << 20).Open();
    private ulong _index;

    [Fact]
    public void What_a_burst_has_left_goes_though_small_batches_are_written()
    {
        WeakReference[] arrays = Burst();
        Commit();
        Assert.All(arrays, static array => Assert.True(array.IsAlive));
        for (int i = 0; i < 3; i++)
        {
            Small();
            _fixture.Log.LetGo();
        }

        GC.Collect();
        Assert.Equal(0, arrays.Count(static array => array.IsAlive));
    }

    [Fact]
    public void As_many_as_are_needed_each_time_stay()
    {
        BatchQueue queue = new();
        LogBuffer[] buffers = [.. Enumerable.Range(0, 6).Select(static _ => new LogBuffer())];
        for (int i = 0; i < 4; i++)
        {
            List<SubmittedBatch> taken = [];
            foreach (LogBuffer buffer in buffers.Take(3).ToArray())
            {
                queue.Put(new SubmittedBatch(null!, buffer, 1));
            }

            queue.Take(taken, int.MaxValue);
            queue.Return(taken);
            queue.LetGo();
            buffers = [.. Enumerable.Range(0, 3).Select(_ => queue.Put(new SubmittedBatch(null!, new LogBuffer(), 1)))];
            Assert.Equal(taken.Select(static batch => batch.Buffer).Reverse(), buffers);
            queue.Take([], int.MaxValue);
        }
    }

    private WeakReference[] Burst()
    {
        byte[] entries = LogFixture.Entries(1, new string('x', 300_000));
        LogWriter writer = (LogWriter)_fixture.Log.OpenWriter(new RecordingSink());
        return [.. Enumerable.Range(1, Batches).Select(number => SubmitLarge(writer, entries, (ulong)number))];
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private WeakReference SubmitLarge(LogWriter writer, byte[] entries, ulong number)
    {
        LogBuffer buffer = new();
        buffer.WriteEntries(LogFixture.One, new LogIndex(++_index), 1, entries);
        _fixture.Log.Submit(new SubmittedBatch(writer, buffer, number));
        Assert.True(MemoryMarshal.TryGetArray(buffer.BodyMemory, out ArraySegment<byte> array));
        return new WeakReference(array.Array);
    }

    private void Small()
    {
        _fixture.Writer.Append(
            LogFixture.Two, _fixture.Log.Recovered(LogFixture.Two).LastIndex.Next(), 1, LogFixture.Entries(1, "small"));
        _fixture.Writer.Submit();
        Commit();
    }

    private void Commit()
    {
        while (_fixture.Log.CommitOnce())
        {
        }
    }
}
