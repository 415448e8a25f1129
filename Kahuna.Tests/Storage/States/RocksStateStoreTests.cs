using System.Buffers.Binary;
using Kahuna.Server.Partitions;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage.RocksDb;
using Kahuna.Server.Storage.States;
using Kahuna.Tests.State;

namespace Kahuna.Tests.Storage.States;

/// <summary>The contract on RocksDB, and what only it can get wrong.</summary>
public sealed class RocksStateStoreTests : StateStoreContract
{
    private readonly string _directory = Directory.CreateTempSubdirectory("kahuna-rocks-").FullName;

    public override void Dispose() => Directory.Delete(_directory, recursive: true);

    [Fact]
    public void Damage_is_named_with_its_file()
    {
        StateDriver state = new();
        Change(state, new Random(3), 500);
        using (IStateStore store = Open())
        {
            Write(store, new GroupId(1), state.Machine, 1);
        }

        string file = Directory.GetFiles(_directory, "*.sst").OrderByDescending(path => new FileInfo(path).Length).First();
        byte[] content = File.ReadAllBytes(file);
        content[content.Length / 4] ^= 1;
        File.WriteAllBytes(file, content);
        StateDamagedException error = Assert.Throws<StateDamagedException>(() =>
        {
            using IStateStore store = Open();
            Load(store, new GroupId(1));
        });
        Assert.Contains(_directory, error.Message, StringComparison.Ordinal);
        Assert.Contains(Path.GetFileName(file), error.Message, StringComparison.Ordinal);
    }

    [Fact]
    public void Unknown_version_is_refused()
    {
        Open().Dispose();
        using (DbOptions options = new())
        using (RocksDatabase database = RocksDatabase.Open(options, _directory, "default"))
        using (WriteBatch batch = new())
        using (WriteOptions write = new())
        {
            byte[] version = new byte[4];
            BinaryPrimitives.WriteUInt32LittleEndian(version, 2);
            database.Write(batch.Put("\0\0\0\0version"u8, version, database.GetColumnFamily("default")), write);
        }

        StateDamagedException error = Assert.Throws<StateDamagedException>(() => Open().Dispose());
        Assert.Contains("format version 02000000", error.Message, StringComparison.Ordinal);
    }

    [Fact]
    public void Second_opening_is_refused()
    {
        using IStateStore store = Open();
        StateDamagedException error = Assert.Throws<StateDamagedException>(() => Open().Dispose());
        Assert.Contains(_directory, error.Message, StringComparison.Ordinal);
    }

    private protected override IStateStore Open() => new RocksStateStore(_directory, bytesPerSecond: 64 << 20);
}
