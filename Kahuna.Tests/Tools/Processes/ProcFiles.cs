namespace Kahuna.Tests.Tools.Processes;

/// <summary>What Linux says of a process in /proc. Stateless; any thread.</summary>
internal static class ProcFiles
{
    /// <summary>
    /// The unit of processor time in these files; the same on every processor for which there is .NET.
    /// </summary>
    public const double TicksPerSecond = 100;

    /// <summary>A size in the file <c>status</c> of a process, in bytes.</summary>
    public static long Bytes(int processId, string field) => 1024 * Field($"/proc/{processId}/status", field);

    public static MemoryUse Memory(int processId) =>
        new(Bytes(processId, "VmRSS"), Bytes(processId, "RssAnon"), Bytes(processId, "VmHWM"), 0);

    /// <summary>Seconds that the process has computed; 0 when it is gone.</summary>
    public static double ProcessorSeconds(int processId)
    {
        try
        {
            (long user, long system) = Ticks($"/proc/{processId}/stat", out _);
            return (user + system) / TicksPerSecond;
        }
        catch (IOException)
        {
            return 0;
        }
    }

    /// <summary>Processor time of all threads of a process, added up by kind.</summary>
    public static Dictionary<string, ThreadUse> Threads(int processId, Func<string, string> kindOf)
    {
        Dictionary<string, ThreadUse> kinds = new(StringComparer.Ordinal);
        foreach (string thread in Directory.GetDirectories($"/proc/{processId}/task"))
        {
            try
            {
                (long user, long system) = Ticks($"{thread}/stat", out string name);
                ThreadUse use = new(
                    user, system, Field($"{thread}/status", "voluntary_ctxt_switches"),
                    Field($"{thread}/status", "nonvoluntary_ctxt_switches"));
                string kind = kindOf(name);
                kinds[kind] = kinds.GetValueOrDefault(kind) + use;
            }
            catch (IOException)
            {
                // The thread has ended.
            }
        }

        return kinds;
    }

    /// <summary>The threads that a process has now, and their names.</summary>
    public static Dictionary<int, string> ThreadNames(int processId)
    {
        Dictionary<int, string> names = [];
        foreach (string thread in Directory.GetDirectories($"/proc/{processId}/task"))
        {
            try
            {
                names[int.Parse(Path.GetFileName(thread))] = File.ReadAllText($"{thread}/comm").TrimEnd();
            }
            catch (IOException)
            {
                // The thread has ended.
            }
        }

        return names;
    }

    private static long Field(string file, string field) =>
        long.Parse(File.ReadLines(file)
            .First(line => line.StartsWith(field + ":", StringComparison.Ordinal))[(field.Length + 1)..]
            .Replace("kB", "", StringComparison.Ordinal));

    private static (long User, long System) Ticks(string file, out string name)
    {
        string text = File.ReadAllText(file);
        int end = text.LastIndexOf(')');
        name = text[(text.IndexOf('(', StringComparison.Ordinal) + 1)..end];
        string[] fields = text[(end + 2)..].Split(' ');
        return (long.Parse(fields[11]), long.Parse(fields[12]));
    }
}
