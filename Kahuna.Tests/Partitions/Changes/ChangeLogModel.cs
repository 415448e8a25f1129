using System.Text;
using Kahuna.Server.Partitions.Changes;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Watches;

namespace Kahuna.Tests.Partitions.Changes;

/// <summary>
/// Writes random changes to a change log and remembers what readers have to find. Used by one test; not thread-safe.
/// </summary>
internal sealed class ChangeLogModel(ChangeLog log)
{
    private readonly List<(ChangePoint Point, string Text)> _written = [];
    private ulong _index;
    private Epoch _epoch;

    /// <summary>What was written since the log began anew, in order, with what is not published yet.</summary>
    public IReadOnlyList<(ChangePoint Point, string Text)> Written => _written;

    /// <summary>The last entry that was published.</summary>
    public ulong Index => _index;

    /// <summary>A change of the next entry.</summary>
    public void Change(int n, string key, string value, int transaction = 0)
    {
        ChangePosition position = new(log.Group, _epoch, new LogIndex(_index + 1), n);
        Change change = new()
        {
            Kind = ChangeKind.Written,
            Key = Encoding.UTF8.GetBytes(key),
            Value = Encoding.UTF8.GetBytes(value),
            Revision = new Revision((long)_index + 1),
            Transaction = transaction,
        };
        log.Changed(in position, in change);
        _written.Add((new ChangePoint(log.Group.Value, _epoch.Value, _index + 1, (uint)n), $"{key}={value}"));
    }

    /// <summary>The next entry is whole.</summary>
    public void Publish() => log.Publish(new LogIndex(++_index));

    /// <summary>An entry of some changes.</summary>
    public void Entry(Random random, int bytesMax)
    {
        int count = random.Next(5);
        for (int n = 0; n < count; n++)
        {
            Change(n, $"key {random.Next(100)}", new string((char)('a' + random.Next(26)), random.Next(bytesMax)));
        }

        Publish();
    }

    /// <summary>A snapshot takes the place of the state, or an epoch begins.</summary>
    public void Restart(ulong index, Epoch epoch)
    {
        (_index, _epoch) = (index, epoch);
        _written.RemoveAll(written => written.Point.Epoch != epoch.Value);
        log.Restart(epoch, new LogIndex(index));
    }

    /// <summary>One read, as text, with where each change stands.</summary>
    public static ChangeRead Read(
        ChangeLog log, ref ChangeCursor cursor, List<(ChangePoint Point, string Text)> found, int bytesMax)
    {
        ulong epoch = cursor.Point.Epoch;
        ByteBuffer buffer = ByteBuffer.Rent();
        ChangeRead result = log.Read(ref cursor, buffer, bytesMax);
        ReadOnlySpan<byte> rest = buffer.Written;
        while (ChangeRecord.TryTake(ref rest, out ChangeRecord record))
        {
            ChangePoint point = new(log.Group.Value, epoch, record.Index, record.N);
            found.Add((point, $"{Encoding.UTF8.GetString(record.Key)}={Encoding.UTF8.GetString(record.Value)}"));
        }

        Assert.True(rest.IsEmpty);
        buffer.Return();
        return result;
    }
}
