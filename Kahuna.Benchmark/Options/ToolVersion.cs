using System.Reflection;

namespace Kahuna.Benchmark.Options;

/// <summary>The version of this tool, as packed. Static, any thread.</summary>
internal static class ToolVersion
{
    public static string Text { get; } = Read();

    private static string Read()
    {
        Assembly tool = typeof(ToolVersion).Assembly;
        string version =
            tool.GetCustomAttribute<AssemblyInformationalVersionAttribute>()?.InformationalVersion ?? "0.0.0";
        int build = version.IndexOf('+', StringComparison.Ordinal);
        return build < 0 ? version : version[..build];
    }
}
