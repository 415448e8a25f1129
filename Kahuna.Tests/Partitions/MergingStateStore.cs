using System.Buffers.Binary;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage.Checkpoints;
using Kahuna.Wire.Buffers;

namespace Kahuna.Tests.Partitions;

/// <summary>
/// Lets the store of whole files take changes, by reading what it has and writing both together: what RocksDB does, on
/// a disk that a test controls. One thread.
/// </summary>
internal sealed class MergingStateStore(FileStateStore files) : IStateStore
{
    private int _writes;

    public bool TakesWholeStates => false;

    public bool WantsWhole(GroupId group) => _writes % 4 == 3;

    public CheckpointMark? Find(GroupId group) => files.Find(group);

    public void Load(GroupId group, RowImageSink sink) => files.Load(group, sink);

    public IStateReader? OpenReader(GroupId group) => files.OpenReader(group);

    public IStateWriter BeginWrite(GroupId group, in CheckpointMark mark, bool whole)
    {
        _writes++;
        return new Writer(files, group, mark, whole);
    }

    public void Dispose() => files.Dispose();

    private sealed class Writer(FileStateStore files, GroupId group, CheckpointMark mark, bool whole) : IStateWriter
    {
        private readonly IStateWriter _writer = files.BeginWrite(group, mark, whole: true);
        private readonly HashSet<uint> _written = [];

        public void Add(ReadOnlySpan<byte> records, bool scattered = false)
        {
            _writer.Add(records);
            while (RowImage.TryTake(ref records, out RowImage record))
            {
                Assert.True(_written.Add(record.Row), "each row comes once");
            }
        }

        public void Commit()
        {
            if (!whole && files.Find(group) is not null)
            {
                ByteBuffer buffer = ByteBuffer.Rent();
                files.Load(group, record =>
                {
                    if (!_written.Contains(record.Row))
                    {
                        BinaryPrimitives.WriteInt32LittleEndian(buffer.Take(sizeof(int)), record.Bytes.Length);
                        buffer.Append(record.Bytes);
                    }
                });
                if (buffer.Length > 0)
                {
                    _writer.Add(buffer.Written);
                }

                buffer.Return();
            }

            _writer.Commit();
        }

        public void Dispose() => _writer.Dispose();
    }
}
