using System.Runtime.InteropServices;

namespace Kahuna.Benchmark.Reporting;

/// <summary>The machine that ran the generator, as far as a reader needs it to judge the numbers. Immutable.</summary>
internal sealed record MachineDescription(
    string Os, string Architecture, string Cpu, int Cores, long MemoryBytes, string Runtime)
{
    public static MachineDescription Read() => new(
        RuntimeInformation.OSDescription,
        RuntimeInformation.OSArchitecture.ToString(),
        ReadCpu(),
        Environment.ProcessorCount,
        GC.GetGCMemoryInfo().TotalAvailableMemoryBytes,
        RuntimeInformation.FrameworkDescription);

    private static string ReadCpu()
    {
        const string Unknown = "unknown";
        if (!OperatingSystem.IsLinux())
        {
            return Unknown;
        }

        try
        {
            string? line = File.ReadLines("/proc/cpuinfo")
                .FirstOrDefault(text => text.StartsWith("model name", StringComparison.Ordinal));
            return line is null ? Unknown : line[(line.IndexOf(':', StringComparison.Ordinal) + 1)..].Trim();
        }
        catch (Exception failure) when (failure is IOException or UnauthorizedAccessException)
        {
            return Unknown;
        }
    }
}
