using System.Globalization;

namespace Kahuna.Server.Storage;

/// <summary>Names of the log's files in its directory. Immutable; any thread.</summary>
internal sealed class SegmentFiles(string directory)
{
    private const string Extension = ".seg";
    private const string TemporaryName = "next.tmp";

    public string Directory => directory;

    /// <summary>The data directory, which contains the log's directory.</summary>
    public string DataDirectory { get; } = System.IO.Path.GetDirectoryName(directory)!;

    /// <summary>
    /// File in which a segment is prepared before it gets its name. Deleted if a crash left it behind.
    /// </summary>
    public string Temporary { get; } = System.IO.Path.Combine(directory, TemporaryName);

    /// <summary>The file of a segment: its number in 20 digits.</summary>
    public string Path(ulong segment) =>
        System.IO.Path.Combine(directory, segment.ToString("D20", CultureInfo.InvariantCulture) + Extension);

    /// <summary>The number in a segment file's name.</summary>
    public static bool TryParse(string name, out ulong segment)
    {
        segment = 0;
        return name.EndsWith(Extension, StringComparison.Ordinal)
            && name.Length == 20 + Extension.Length
            && ulong.TryParse(name.AsSpan(0, 20), NumberStyles.None, CultureInfo.InvariantCulture, out segment);
    }
}
