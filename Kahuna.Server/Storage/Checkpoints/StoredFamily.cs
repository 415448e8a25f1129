using System.Globalization;
using Kahuna.Server.Storage.RocksDb;

namespace Kahuna.Server.Storage.Checkpoints;

/// <summary>The column family that has a group's state, and its size. Owned by the store; not thread-safe.</summary>
internal sealed class StoredFamily(RocksDatabase database, ColumnFamily family, long generation)
{
    /// <summary>
    /// The next write contains the whole state, in a new family, when the family has grown to this multiple of the
    /// state. The state is in memory, so writing it costs a fraction of reading and merging old files, and a family is
    /// dropped without being read.
    /// </summary>
    private const double BytesMax = 2.5;

    /// <summary>Most files of a family. Reading merges them, each with its own buffer.</summary>
    private const int FilesMax = 48;

    /// <summary>Bytes that do not count, so that a tiny state is not rewritten all the time.</summary>
    private const long BytesIgnored = 1L << 20;

    private const int Levels = 7;

    public ColumnFamily Family => family;

    public long Generation => generation;

    /// <summary>Bytes of the current records, as of the last whole write or read; 0 if unknown.</summary>
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

    private long Number(string property) =>
        long.Parse(database.GetProperty(property, family) ?? "0", CultureInfo.InvariantCulture);
}
