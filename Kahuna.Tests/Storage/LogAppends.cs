using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage;

namespace Kahuna.Tests.Storage;

/// <summary>Appends entries that lie in one piece. Stateless.</summary>
internal static class LogAppends
{
    public static void Append(
        this ILogWriter writer, GroupId group, LogIndex first, int count, ReadOnlySpan<byte> entries)
    {
        entries.CopyTo(writer.BeginAppend(group, first, count, entries.Length));
        writer.EndAppend();
    }

    public static void WriteEntries(
        this LogBuffer buffer, GroupId group, LogIndex first, int count, ReadOnlySpan<byte> entries)
    {
        entries.CopyTo(LogRecord.BeginEntries(buffer, group, first, count, entries.Length));
        LogRecord.EndEntries(buffer, entries.Length);
    }
}
