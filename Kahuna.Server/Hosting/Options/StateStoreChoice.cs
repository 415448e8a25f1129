namespace Kahuna.Server.Hosting.Options;

/// <summary>The store of a node's state on disk.</summary>
internal enum StateStoreChoice
{
    /// <summary>
    /// What the data directory records; for a new one, RocksDB if its library can be loaded, else files. The default.
    /// </summary>
    Auto,

    /// <summary>A RocksDB database.</summary>
    RocksDb,

    /// <summary>Whole snapshot files.</summary>
    Files,
}
