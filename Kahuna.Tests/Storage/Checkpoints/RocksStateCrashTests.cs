using System.Globalization;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.State;
using Kahuna.Server.State.Rows;
using Kahuna.Server.Storage.Checkpoints;
using Kahuna.Tests.State;

namespace Kahuna.Tests.Storage.Checkpoints;

/// <summary>
/// A process that is killed between any two steps of a write leaves the old state or the new one, and nothing else.
/// Copies of the directory stand for what it leaves; the moments within the taking in are put together from the copies
/// before and after it.
/// </summary>
public sealed class RocksStateCrashTests : IDisposable
{
    private static readonly GroupId s_group = new(1);

    private readonly string _root = Directory.CreateTempSubdirectory("kahuna-crash-").FullName;
    private readonly StateDriver _state = new();

    public void Dispose() => Directory.Delete(_root, recursive: true);

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public void Old_state_or_new_one_and_no_file_too_many(bool whole)
    {
        string live = Path.Combine(_root, "live");
        string before = Path.Combine(_root, "before");
        string after = Path.Combine(_root, "after");
        Change(1);
        using (RocksStateStore first = new(live))
        {
            Commit(first, 1, whole: true);
        }

        using RocksStateStore store = Open(live);
        ulong old = _state.Machine.Digest;
        Change(2);
        ulong now = _state.Machine.Digest;
        using StateView view = whole ? _state.Machine.ViewAll() : _state.Machine.ViewChanges();
        using (IStateWriter writer = store.BeginWrite(
            s_group, new CheckpointMark(new LogIndex(2), new Term(1), view.Summary), whole))
        {
            for (bool more = true; more;)
            {
                more = StateSlices.Add(writer, view, 1_000);

                // Records that change now and were not read yet come in separate pieces.
                Change(2);
                Recreate(before, live);
                Assert.Equal((1UL, old), Reopen(before));
            }

            Recreate(before, live);
            Assert.True(Directory.GetFiles(Path.Combine(before, "staging")).Length > 1);
            writer.Commit();
            Recreate(after, live);
        }

        CutAtEveryPlace(before, after, (old, now));
        Assert.Equal((2UL, now), Reopen(after));
    }

    /// <summary>The files are linked, and RocksDB's record of it in the manifest is cut anywhere.</summary>
    private void CutAtEveryPlace(string before, string after, (ulong Old, ulong New) digests)
    {
        string crashed = Path.Combine(_root, "crashed");
        string manifest = Path.GetFileName(Assert.Single(Directory.GetFiles(after, "MANIFEST-*")));
        byte[] noted = File.ReadAllBytes(Path.Combine(after, manifest));
        int start = (int)new FileInfo(Path.Combine(before, manifest)).Length;
        Assert.True(noted.Length > start);
        bool changed = false;
        for (int length = start;
            length <= noted.Length;
            length = length == noted.Length ? length + 1 : Math.Min(length + 11, noted.Length))
        {
            Recreate(crashed, before);
            foreach (string file in Directory.GetFiles(after, "*.sst"))
            {
                File.Copy(file, Path.Combine(crashed, Path.GetFileName(file)), overwrite: true);
            }

            File.WriteAllBytes(Path.Combine(crashed, manifest), noted[..length]);
            (ulong index, ulong digest) = Reopen(crashed);
            changed |= index == 2;
            Assert.Equal(changed ? (2UL, digests.New) : (1UL, digests.Old), (index, digest));
            Assert.True(index == 1 || length > start, "what is not noted is not there");
        }

        Assert.True(changed, "what is noted in full is there");
    }

    private static RocksStateStore Open(string directory) => new(directory, pieceBytes: 6_000);

    /// <summary>The state after a restart, which must also have removed all unused files.</summary>
    private static (ulong Index, ulong Digest) Reopen(string directory)
    {
        using RocksStateStore store = Open(directory);
        Assert.Empty(Directory.GetFiles(Path.Combine(directory, "staging")));
        CheckpointMark mark = store.Find(s_group)!.Value;
        StateLoader loader = new(new StateLimits(), mark.Summary);
        store.Load(s_group, record => loader.Add(record.Bytes));
        long version = Directory.GetFiles(directory, "*.sst").Min(file => new FileInfo(file).Length);
        Assert.Equal(
            store.Property(s_group, "rocksdb.live-sst-files-size"),
            (Directory.GetFiles(directory, "*.sst").Sum(file => new FileInfo(file).Length) - version).ToString(
                CultureInfo.InvariantCulture));
        return (mark.Index.Value, loader.Finish().Digest);
    }

    private static void Recreate(string copy, string source)
    {
        if (Directory.Exists(copy))
        {
            Directory.Delete(copy, recursive: true);
        }

        Directory.CreateDirectory(Path.Combine(copy, "staging"));
        foreach (string file in Directory.GetFiles(source, "*", SearchOption.AllDirectories))
        {
            File.Copy(file, Path.Combine(copy, Path.GetRelativePath(source, file)));
        }
    }

    private void Change(int round)
    {
        for (int i = 0; i < 60; i++)
        {
            _state.Set($"key/{i * round}", $"round {round}, {new string('v', 80)}");
        }
    }

    private void Commit(RocksStateStore store, ulong index, bool whole)
    {
        using StateView view = _state.Machine.ViewAll();
        using IStateWriter writer = store.BeginWrite(
            s_group, new CheckpointMark(new LogIndex(index), new Term(1), view.Summary), whole);
        StateSlices.Add(writer, view, int.MaxValue / 2);
        writer.Commit();
    }
}
