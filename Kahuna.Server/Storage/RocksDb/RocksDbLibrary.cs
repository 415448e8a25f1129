using System.Reflection;
using System.Runtime.InteropServices;

namespace Kahuna.Server.Storage.RocksDb;

/// <summary>
/// Where the native library comes from: beside the program first (what a package would bring), then the system's, in the version that was
/// tried. Any thread.
/// </summary>
internal static class RocksDbLibrary
{
    /// <summary>What the interop asks for.</summary>
    public const string Name = "rocksdb";

    /// <summary>The Debian package that has it.</summary>
    public const string Package = "librocksdb7.8";

    private static readonly string[] s_system = ["librocksdb.so.7.8", "librocksdb.so.7", "librocksdb.so"];
    private static readonly Lazy<nint> s_loaded = new(Load);

    /// <summary>The library was found and can be loaded.</summary>
    public static bool IsAvailable => s_loaded.Value != 0;

    /// <summary>What to do when it was not found; one line.</summary>
    public static string Missing => $"the native library of RocksDB was not found; install the Debian package {Package} (apt-get install {Package})";

    /// <summary>Lets the interop of this assembly find it. Called once, before any other code of the assembly.</summary>
    public static void Register() => NativeLibrary.SetDllImportResolver(typeof(RocksDbLibrary).Assembly, static (name, _, _) => name == Name ? s_loaded.Value : 0);

    private static nint Load()
    {
        Assembly own = typeof(RocksDbLibrary).Assembly;
        string beside = Path.Combine(AppContext.BaseDirectory, "librocksdb.so");
        if (File.Exists(beside) && NativeLibrary.TryLoad(beside, out nint local))
        {
            return local;
        }

        foreach (string name in s_system)
        {
            if (NativeLibrary.TryLoad(name, own, DllImportSearchPath.SafeDirectories, out nint loaded))
            {
                return loaded;
            }
        }

        return 0;
    }
}
