using System.Reflection;
using System.Runtime.InteropServices;

namespace Kahuna.Server.Storage.RocksDb;

/// <summary>
/// Loads the native library of the RocksDB package, for Linux (glibc and musl), macOS and Windows. Any thread.
/// </summary>
internal static class RocksDbLibrary
{
    /// <summary>Name that the interop requests.</summary>
    public const string Name = "rocksdb";

    /// <summary>Name of the package's library for musl.</summary>
    private const string MuslName = "rocksdb-musl";

    private static readonly Lazy<nint> s_loaded = new(Load);

    /// <summary>The library can be loaded here.</summary>
    public static bool IsAvailable => s_loaded.Value != 0;

    /// <summary>Why it cannot be loaded, in one line.</summary>
    public static string Missing =>
        $"the native library of RocksDB cannot be loaded on this system ({RuntimeInformation.RuntimeIdentifier}); "
            + "Kahuna has it for Linux and macOS on x64 and arm64 and for Windows on x64";

    /// <summary>
    /// Lets the interop of this assembly find the library. Called once, before any other code of the assembly.
    /// </summary>
    public static void Register() =>
        NativeLibrary.SetDllImportResolver(
            typeof(RocksDbLibrary).Assembly, static (name, _, _) => name == Name ? s_loaded.Value : 0);

    private static nint Load()
    {
        Assembly own = typeof(RocksDbLibrary).Assembly;
        bool isMusl = RuntimeInformation.RuntimeIdentifier.Contains("musl", StringComparison.Ordinal);
        return NativeLibrary.TryLoad(
            isMusl ? MuslName : Name, own, DllImportSearchPath.AssemblyDirectory, out nint loaded)
            ? loaded
            : 0;
    }
}
