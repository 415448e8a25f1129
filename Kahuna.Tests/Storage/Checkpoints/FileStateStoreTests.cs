using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.State;
using Kahuna.Server.Storage.Checkpoints;
using Kahuna.Server.Storage.Disk;
using Kahuna.Tests.State;

namespace Kahuna.Tests.Storage.Checkpoints;

/// <summary>The store contract on a disk that forgets unsynced data, and the effects of crashes and damage.</summary>
public sealed class FileStateStoreTests : StateStoreContract
{
    private const string Folder = "/data/state";
    private const string Snapshot = "/data/state/state-1.snapshot";

    private readonly ModelDisk _disk = new();

    public override void Dispose()
    {
    }

    [Fact]
    public void Crash_at_any_moment_leaves_the_old_state_or_the_new_one()
    {
        Random random = new(5);
        for (int round = 0; round < 200; round++)
        {
            ModelDisk disk = new();
            StateDriver state = new();
            Change(state, random, 100);
            Write(new FileStateStore(disk, Folder), new GroupId(1), state.Machine, 1);
            ulong before = state.Machine.Digest;
            Change(state, random, 100);
            int left = random.Next(12);
            disk.Fault = (_, _) => left-- <= 0 ? throw new OperationCanceledException() : 0;
            bool committed = false;
            try
            {
                Write(new FileStateStore(disk, Folder), new GroupId(1), state.Machine, 2);
                committed = true;
            }
            catch (OperationCanceledException)
            {
                // The power fails here.
            }

            disk.Fault = null;
            disk.Crash(random);
            FileStateStore store = new(disk, Folder);
            CheckpointMark mark = store.Find(new GroupId(1))!.Value;
            Assert.True(!committed || mark.Index.Value == 2, "what was committed is there");
            Assert.Equal(mark.Index.Value == 2 ? state.Machine.Digest : before, Load(store, new GroupId(1)).Digest);
            Assert.Equal(Snapshot, Assert.Single(disk.Files));
        }
    }

    [Fact]
    public void State_that_was_found_after_a_kill_is_there_after_the_power_failed()
    {
        StateDriver state = new();
        Write(Open(), new GroupId(1), state.Machine, 1);
        state.Set("key", "value");
        FileStateStore killed = new(_disk, Folder);
        _disk.Fault = (step, _) => step == DiskStep.SyncDirectory ? throw new OperationCanceledException() : 0;
        Assert.Throws<OperationCanceledException>(() => Write(killed, new GroupId(1), state.Machine, 2));
        _disk.Fault = null;
        _disk.Kill();
        Assert.Equal(2UL, Open().Find(new GroupId(1))!.Value.Index.Value);
        _disk.Crash();
        Assert.Equal(state.Machine.Digest, Load(Open(), new GroupId(1)).Digest);
    }

    [Theory]
    [InlineData(DiskException.NoSpaceLeft, true)]
    [InlineData(122, true)]
    [InlineData(DiskException.InputOutputError, false)]
    public void Failed_write_is_told_and_the_old_state_stays(int error, bool noSpace)
    {
        StateDriver state = new();
        state.Set("key", "before");
        Write(Open(), new GroupId(1), state.Machine, 1);
        ulong before = state.Machine.Digest;
        state.Set("key", "after");
        foreach (DiskStep failing in new[] { DiskStep.Open, DiskStep.Write, DiskStep.SyncData, DiskStep.Rename })
        {
            FileStateStore store = new(_disk, Folder);
            using StateView view = state.Machine.ViewAll();
            using IStateWriter writer = store.BeginWrite(
                new GroupId(1), new CheckpointMark(new LogIndex(2), new Term(1), view.Summary), whole: true);
            _disk.Fault = (step, _) => step == failing ? error : 0;
            StateWriteFailedException failure = Assert.Throws<StateWriteFailedException>(() =>
            {
                AddAll(writer, view);
                writer.Commit();
            });
            Assert.Equal(noSpace, failure.NoSpace);
            Assert.Contains(Snapshot, failure.Message, StringComparison.Ordinal);
            Assert.Throws<InvariantException>(writer.Commit);
            _disk.Fault = null;
            writer.Dispose();
            Assert.Equal(before, Load(store, new GroupId(1)).Digest);
            Assert.Equal(Snapshot, Assert.Single(_disk.Files));
        }

        Write(Open(), new GroupId(1), state.Machine, 3);
        Assert.Equal(state.Machine.Digest, Load(Open(), new GroupId(1)).Digest);
    }

    [Fact]
    public void Store_takes_a_write_when_there_is_room_again()
    {
        StateDriver state = new();
        Change(state, new Random(8), 500);
        using IStateStore store = Open();
        Write(store, new GroupId(1), state.Machine, 1);
        ulong before = state.Machine.Digest;
        Change(state, new Random(9), 500);
        _disk.Capacity = _disk.Used + (_disk.Used / 2);
        Assert.True(
            Assert.Throws<StateWriteFailedException>(() => Write(store, new GroupId(1), state.Machine, 2)).NoSpace);
        Assert.Empty(Unfinished());
        Assert.Equal(before, Load(store, new GroupId(1)).Digest);
        _disk.Capacity *= 10;
        Write(store, new GroupId(1), state.Machine, 2);
        Assert.Equal(state.Machine.Digest, Load(store, new GroupId(1)).Digest);
    }

    [Fact]
    public void Part_of_a_state_is_not_taken()
    {
        using IStateStore store = Open();
        Assert.Throws<InvariantException>(() => store.BeginWrite(new GroupId(1), default, whole: false));
    }

    [Fact]
    public void Every_flipped_bit_and_every_cut_is_found_and_named()
    {
        StateDriver state = new();
        Change(state, new Random(6), 60);
        Write(Open(), new GroupId(1), state.Machine, 1);
        byte[] whole = _disk.Content(Snapshot);
        for (int bit = 0; bit < whole.Length * 8; bit += 5)
        {
            byte[] damaged = [.. whole];
            damaged[bit / 8] ^= (byte)(1 << (bit % 8));
            Refuses(damaged);
        }

        for (int length = 0; length < whole.Length; length += 7)
        {
            Refuses(whole[..length]);
        }
    }

    [Fact]
    public void Unknown_version_and_foreign_group_are_refused()
    {
        StateDriver state = new();
        Write(Open(), new GroupId(1), state.Machine, 1);
        byte[] other = _disk.Content(Snapshot);
        other[8] = 5;
        Assert.Contains("format version 5; this program reads version 4", Refuses(other), StringComparison.Ordinal);
        Put("/data/state/state-2.snapshot", _disk.Content(Snapshot));
        other[8] = 4;
        Put(Snapshot, other);
        Put("/data/state/state-2.snapshot", other);
        Assert.Contains(
            "group 1, not of 2",
            Assert.Throws<SnapshotDamagedException>(() => Open().Find(new GroupId(2))).Message,
            StringComparison.Ordinal);
    }

    private protected override IStateStore Open() => new FileStateStore(_disk, Folder);

    private protected override IEnumerable<string> Unfinished() =>
        _disk.Files.Where(path => !path.EndsWith(".snapshot", StringComparison.Ordinal));

    private string Refuses(byte[] content)
    {
        Put(Snapshot, content);
        SnapshotDamagedException error = Assert.Throws<SnapshotDamagedException>(() => Load(Open(), new GroupId(1)));
        Assert.Contains(Snapshot, error.Message, StringComparison.Ordinal);
        AssertNamesTheWayOut(error);
        return error.Message;
    }

    private void Put(string path, byte[] content)
    {
        using IDiskFile file = _disk.Open(path, DiskFileMode.Empty);
        file.Write(0, [content]);
        file.SyncData();
    }
}
