using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.State;
using Kahuna.Server.State.Rows;
using Kahuna.Server.Storage.Checkpoints;
using Kahuna.Server.Storage.RocksDb;
using Kahuna.Tests.State;
using Xunit.Abstractions;

namespace Kahuna.Tests.Storage.Checkpoints;

/// <summary>
/// A full disk is told apart from other failures, harms nothing that is stored, and the same store goes on when there
/// is room.
/// </summary>
public sealed class RocksStateSpaceTests(ITestOutputHelper output)
{
    private const int PageBytes = 4096;

    private static readonly GroupId s_group = new(1);

    /// <summary>
    /// Room for no page, one page, two pages and so on, until the write fits: so it fails in each of its steps once.
    /// Without the right to mount another failure has to do.
    /// </summary>
    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public void Write_fails_wherever_the_room_ends_and_succeeds_afterwards(bool whole)
    {
        using SmallDisk? disk = SmallDisk.TryMount(20 << 20);
        if (disk is null)
        {
            output.WriteLine("Checked: another failure than lack of room; this process may not mount a small disk");
            Failure_of_another_kind_is_told_and_harms_nothing_either();
            return;
        }

        StateDriver state = new();
        using RocksStateStore store = new(Path.Combine(disk.Path, "state"), pieceBytes: 10_000, manifestReserve: 0);
        Change(state, 0);
        Write(store, state.Machine, 1);
        ulong stored = state.Machine.Digest;
        int failed = 0;
        int atCommit = 0;
        int inManifest = 0;
        int inOptions = 0;
        int pages = 0;
        for (int round = 1, rounds = 1_000; round <= rounds; round++)
        {
            Change(state, round);
            bool inCommit = false;
            using (disk.Fill(pages * PageBytes))
            {
                try
                {
                    Write(store, state.Machine, 2, whole, () => inCommit = true);
                    stored = state.Machine.Digest;

                    // The files fit now. Whether the line in the manifest does depends on how full its last page is:
                    // enough rounds to see both.
                    rounds = Math.Min(rounds, round + 80);
                }
                catch (StateWriteFailedException error)
                {
                    Assert.True(error.NoSpace, error.Message);
                    Assert.Contains(disk.Path, error.Message, StringComparison.Ordinal);
                    failed++;
                    atCommit += inCommit ? 1 : 0;
                    inManifest += error.Message.Contains("MANIFEST", StringComparison.Ordinal) ? 1 : 0;
                    inOptions += error.Message.Contains("OPTIONS", StringComparison.Ordinal) ? 1 : 0;
                    pages += rounds == 1_000 ? 1 : 0;
                    Assert.Equal(stored, Load(store));
                }
            }

            Assert.Empty(Directory.GetFiles(Path.Combine(disk.Path, "state", "staging")));
            WriteOnceThereIsRoom(store, state.Machine, 3);
            stored = state.Machine.Digest;
            Assert.Equal(stored, Load(store));
        }

        output.WriteLine(
            $"Checked: {failed} writes without room, {atCommit} of them in the commit, {inManifest} in the manifest, "
                + $"{inOptions} in the file of the options");
        Assert.True(failed > 5);
        Assert.True(atCommit > 0);

        // A whole state gets a family of its own, and RocksDB a file with the options of all; changes of a state are
        // noted in the manifest only.
        Assert.True(whole ? inOptions > 0 : inManifest > 0);
    }

    /// <summary>
    /// RocksDB makes a family and says that it failed when there is no room for the file of its options, which grows
    /// with each family. Nobody could drop them before the next opening.
    /// </summary>
    [Fact]
    public void Writes_without_room_leave_one_family_behind_at_most()
    {
        using SmallDisk? disk = SmallDisk.TryMount(3 << 20);
        if (disk is null)
        {
            output.WriteLine("Checked: nothing; this process may not mount a small disk");
            return;
        }

        string directory = Path.Combine(disk.Path, "state");
        StateDriver state = new();
        Change(state, 0);
        using (RocksStateStore store = Open(directory))
        {
            Write(store, state.Machine, 1);
            for (int pages = 0, inOptions = 0; inOptions < 10; pages++)
            {
                using (disk.Fill(pages * PageBytes))
                {
                    try
                    {
                        Write(store, state.Machine, 2);
                        Assert.Fail("there was room");
                    }
                    catch (StateWriteFailedException error)
                    {
                        Assert.True(error.NoSpace, error.Message);
                        inOptions += inOptions > 0 || error.Message.Contains("OPTIONS", StringComparison.Ordinal)
                            ? 1
                            : 0;
                    }
                }
            }
        }

        using (DbOptions options = new())
        {
            Assert.InRange(RocksDatabase.ListColumnFamilies(options, directory).Length, 2, 3);
        }

        using RocksStateStore again = Open(directory);
        Assert.Equal(state.Machine.Digest, Load(again));
    }

    /// <summary>A file system gives the room of a removed file back a moment later.</summary>
    private static void WriteOnceThereIsRoom(RocksStateStore store, StateMachine machine, ulong index)
    {
        for (int attempts = 1; ; attempts++)
        {
            try
            {
                Write(store, machine, index);
                return;
            }
            catch (StateWriteFailedException error) when (error.NoSpace && attempts < 50)
            {
                Thread.Sleep(100);
            }
        }
    }

    /// <summary>
    /// Opening needs some pages: with each number of them it works or says why not, and the state is there afterwards.
    /// </summary>
    [Fact]
    public void Opening_on_a_full_disk_says_so()
    {
        using SmallDisk? disk = SmallDisk.TryMount(24 << 20);
        if (disk is null)
        {
            StateWriteFailedException error = Assert.Throws<StateWriteFailedException>(
                () => Open("/proc/state").Dispose());
            Assert.Contains("/proc/state", error.Message, StringComparison.Ordinal);
            Assert.False(error.NoSpace);
            return;
        }

        for (int run = 0; run < 2; run++)
        {
            string directory = Path.Combine(disk.Path, $"state{run}");
            StateDriver state = new();
            Change(state, 0);
            int failed = 0;
            for (int pages = 0, opened = 0; opened < 2; pages++)
            {
                using (disk.Fill(pages * PageBytes))
                {
                    try
                    {
                        Open(directory).Dispose();
                        opened++;
                    }
                    catch (StateWriteFailedException error)
                    {
                        Assert.True(error.NoSpace, error.Message);
                        Assert.Contains(directory, error.Message, StringComparison.Ordinal);
                        failed++;
                    }
                }

                // The first time the directory is made step by step, the second time there is something to lose.
                if (run == 1)
                {
                    using RocksStateStore store = Open(directory);
                    Write(store, state.Machine, 1);
                    Assert.Equal(state.Machine.Digest, Load(store));
                }
            }

            output.WriteLine($"Checked: {failed} openings without room");
            Assert.True(failed > 0);
        }
    }

    [Fact]
    public void Failure_of_another_kind_is_told_and_harms_nothing_either()
    {
        string directory = Directory.CreateTempSubdirectory("kahuna-full-").FullName;
        string staging = Path.Combine(directory, "staging");
        try
        {
            StateDriver state = new();
            using RocksStateStore store = Open(directory);
            Change(state, 0);
            Write(store, state.Machine, 1);
            ulong stored = state.Machine.Digest;
            Change(state, 1);
            Directory.Delete(staging);
            StateWriteFailedException error = Assert.Throws<StateWriteFailedException>(
                () => Write(store, state.Machine, 2));
            Assert.False(error.NoSpace, error.Message);
            Assert.Contains(directory, error.Message, StringComparison.Ordinal);
            Assert.Equal(stored, Load(store));
            Directory.CreateDirectory(staging);
            Write(store, state.Machine, 2);
            Assert.Equal(state.Machine.Digest, Load(store));
        }
        finally
        {
            Directory.Delete(directory, recursive: true);
        }
    }

    private static RocksStateStore Open(string directory) => new(directory, pieceBytes: 10_000);

    private static void Change(StateDriver state, int round)
    {
        for (int i = 0; i < 200; i++)
        {
            state.Set($"key/{i}", $"{round:D4} {new string('v', 100)}");
        }
    }

    private static void Write(
        RocksStateStore store, StateMachine machine, ulong index, bool whole = true, Action? beforeCommit = null)
    {
        using StateView view = machine.ViewAll();
        using IStateWriter writer = store.BeginWrite(
            s_group, new CheckpointMark(new LogIndex(index), new Term(1), view.Summary), whole);
        StateSlices.Add(writer, view, int.MaxValue / 2);
        beforeCommit?.Invoke();
        writer.Commit();
    }

    private static ulong Load(RocksStateStore store)
    {
        StateLoader loader = new(new StateLimits(), store.Find(s_group)!.Value.Summary);
        store.Load(s_group, record => loader.Add(record.Bytes));
        return loader.Finish().Digest;
    }
}
