using Kahuna.Server.Primitives;
using Kahuna.Server.Storage.Disk;

namespace Kahuna.Server.Storage;

/// <summary>
/// Refuses writes when the log has reached its limit or its disk runs out of space. Owned by the log thread;
/// <see cref="Refusal"/> from any thread.
/// </summary>
internal sealed class LogSpace(IDisk disk, string directory, SegmentedLogOptions options, Action<ReportLine> report)
{
    private string? _pastLimit;
    private string? _diskLow;

    /// <summary>Why writes are refused, or null.</summary>
    public string? Refusal => Volatile.Read(ref _pastLimit) ?? Volatile.Read(ref _diskLow);

    /// <summary>Compares the log's size with its limit.</summary>
    public void CheckLimit(long bytes)
    {
        bool past = bytes >= options.LogLimitBytes;
        if (past != (_pastLimit is not null))
        {
            long limitMiB = options.LogLimitBytes >> 20;
            Refuse(ref _pastLimit, past
                ? Line(
                    $"The log in {directory} has reached its limit of {limitMiB} MiB (--log-limit), so writes are "
                    + $"refused; reads go on.")
                : null);
        }
    }

    /// <summary>Compares the free space on the disk with its limit.</summary>
    public void CheckDisk()
    {
        try
        {
            DiskSpace space = disk.Space(directory);
            bool low = space.Free < space.Total / 100 * options.FreePercentMin;
            (long freeMiB, long totalMiB, int percent) = (space.Free >> 20, space.Total >> 20, options.FreePercentMin);
            Refuse(ref _diskLow, low
                ? Line(
                    $"The disk of {directory} has {freeMiB} MiB of {totalMiB} MiB free, less than {percent} %, so "
                    + $"writes are refused until there is room; reads go on.")
                : null);
        }
        catch (IOException error)
        {
            report($"Log: the free room on the disk of {directory} cannot be read: {error.Message}");
        }
    }

    private static ReportLine Line(ReportLine line) => line;

    private void Refuse(ref string? reason, ReportLine? line)
    {
        if (line is not null && reason is null)
        {
            report(line);
        }

        Volatile.Write(ref reason, line?.ToString());
    }
}
