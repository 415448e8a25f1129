using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Primitives;

namespace Kahuna.Tests.Hosting;

/// <summary>Where a data directory keeps its state, with and without the library of RocksDB.</summary>
public sealed class StateStoreSelectionTests
{
    [Theory]
    [InlineData(StateStoreChoice.Auto, null, true, StateStoreChoice.RocksDb)]
    [InlineData(StateStoreChoice.RocksDb, null, true, StateStoreChoice.RocksDb)]
    [InlineData(StateStoreChoice.Files, null, true, StateStoreChoice.Files)]
    [InlineData(StateStoreChoice.Files, null, false, StateStoreChoice.Files)]
    [InlineData(StateStoreChoice.Auto, StateStoreChoice.Files, true, StateStoreChoice.Files)]
    [InlineData(StateStoreChoice.Auto, StateStoreChoice.Files, false, StateStoreChoice.Files)]
    [InlineData(StateStoreChoice.Auto, StateStoreChoice.RocksDb, true, StateStoreChoice.RocksDb)]
    internal void What_is_recorded_goes_before_the_library(
        StateStoreChoice asked, StateStoreChoice? recorded, bool available, StateStoreChoice expected)
    {
        Assert.Equal(
            expected, StateStoreSelection.Choose(Options(asked), recorded, available, out ReportLine? warning));
        Assert.Null(warning);
    }

    [Fact]
    public void Without_the_library_a_new_directory_gets_files_and_the_operator_a_line()
    {
        Assert.Equal(
            StateStoreChoice.Files,
            StateStoreSelection.Choose(
                Options(StateStoreChoice.Auto), null, available: false, out ReportLine? warning));
        Assert.Contains(
            "the native library of RocksDB cannot be loaded on this system (",
            warning!.ToString(),
            StringComparison.Ordinal);
        Assert.DoesNotContain('\n', warning!.ToString());
    }

    [Theory]
    [InlineData(StateStoreChoice.RocksDb, null, "--state-store rocksdb: the native library of RocksDB cannot be loaded on this system (RID); Kahuna has it for Linux and macOS on x64 and arm64 and for Windows on x64.")]
    [InlineData(StateStoreChoice.Auto, StateStoreChoice.RocksDb, "The data directory /data keeps its state in RocksDB: the native library of RocksDB cannot be loaded on this system (RID); Kahuna has it for Linux and macOS on x64 and arm64 and for Windows on x64.")]
    [InlineData(StateStoreChoice.Files, StateStoreChoice.RocksDb, "The data directory /data keeps its state in 'rocksdb', but this node is started with --state-store files; leave the option out or use another directory. A node of a cluster can change it with --rebuild.")]
    internal void What_cannot_be_is_refused(StateStoreChoice asked, StateStoreChoice? recorded, string expected) =>
        Assert.Equal(
            expected.Replace(
                "RID", System.Runtime.InteropServices.RuntimeInformation.RuntimeIdentifier, StringComparison.Ordinal),
            Assert.Throws<DataDirectoryException>(
                () => StateStoreSelection.Choose(Options(asked), recorded, available: false, out _)).Message);

    private static NodeOptions Options(StateStoreChoice asked) => new() { DataDirectory = "/data", StateStore = asked };
}
