using System.Globalization;
using System.Runtime.InteropServices;
using Kahuna.Tests.Tools.Processes;

namespace Kahuna.Tests.Tools.Reporting;

/// <summary>The machine that a report was taken on. Immutable.</summary>
internal sealed record Machine(string Cpu, int Cores, string Kernel, string Filesystem, string Date)
{
    /// <param name="filesystem">Of the disk that the nodes write to.</param>
    public static Machine Current(string filesystem) => new(
        Processor(), Environment.ProcessorCount, Child.Read("uname", "-r").Trim(), filesystem,
        DateTime.UtcNow.ToString("yyyy-MM-ddTHH:mm:ss+00:00", CultureInfo.InvariantCulture));

    public override string ToString() => $"machine: {Cpu}, {Cores} cores, {Filesystem}, Linux {Kernel}";

    private static string Processor()
    {
        const string Names = "/proc/cpuinfo";
        string? line = File.Exists(Names)
            ? File.ReadLines(Names).FirstOrDefault(
                static line => line.StartsWith("model name", StringComparison.Ordinal)) : null;
        return line?.Split(':', 2)[1].Trim() ?? RuntimeInformation.ProcessArchitecture.ToString();
    }
}
