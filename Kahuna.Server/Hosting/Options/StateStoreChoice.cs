namespace Kahuna.Server.Hosting.Options;

/// <summary>Where a node keeps its state on disk.</summary>
internal enum StateStoreChoice
{
    /// <summary>What the data directory records; for a new one RocksDB when its library is found, else files. The default.</summary>
    Auto,

    /// <summary>In a RocksDB database.</summary>
    RocksDb,

    /// <summary>In whole snapshot files.</summary>
    Files,
}
