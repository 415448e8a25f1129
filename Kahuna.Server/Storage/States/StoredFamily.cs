using System.Globalization;
using Kahuna.Server.Storage.RocksDb;

namespace Kahuna.Server.Storage.States;

/// <summary>The column family that has a group's state, and what is known of its size. Owned by the store.</summary>
internal sealed class StoredFamily(RocksDatabase database, ColumnFamily family, long generation)
{
    /// <summary>
    /// The next write brings the whole state, and a new family, when what lies here is so many times the state. The state is in memory: to write it costs a fraction of what it
    /// costs to read and merge everything that was ever written, and a family is dropped without being read.
    /// </summary>
    private const double BytesMax = 2.5;

    /// <summary>Reading merges the files, each with a buffer of its own.</summary>
    private const int FilesMax = 48;

    /// <summary>Of a state that is nearly nothing, the bytes do not matter.</summary>
    private const long BytesIgnored = 1L << 20;

    private const int Levels = 7;

    public ColumnFamily Family => family;

    public long Generation => generation;

    /// <summary>Bytes of the records that count, as of the last whole write or reading; 0: not known.</summary>
    public long StateBytes { get; set; }

    public bool IsOverfull
    {
        get
        {
            long files = 0;
            for (int level = 0; level < Levels; level++)
            {
                files += Number(string.Create(CultureInfo.InvariantCulture, $"rocksdb.num-files-at-level{level}"));
            }

            return files > FilesMax || Bytes > BytesIgnored + (BytesMax * StateBytes);
        }
    }

    /// <summary>Bytes of the files.</summary>
    public long Bytes => Number("rocksdb.total-sst-files-size");

    private long Number(string property) => long.Parse(database.GetProperty(property, family) ?? "0", CultureInfo.InvariantCulture);
}
