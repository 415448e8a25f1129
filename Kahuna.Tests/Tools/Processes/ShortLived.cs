using System.Diagnostics;

namespace Kahuna.Tests.Tools.Processes;

/// <summary>
/// Settings of the .NET runtime for a process that lives for seconds and starts in front of a test: it does not gain
/// back what better code costs to compile. They change speed, nothing else. Stateless.
/// </summary>
internal static class ShortLived
{
    /// <summary>
    /// Hexadecimal milliseconds: methods are compiled a second time, with optimization, once no new one was needed for
    /// sixteen seconds. The runtime's default is a tenth of a second.
    /// </summary>
    private const string OptimizationDelay = "4000";

    /// <summary>The process that is started, and all that it starts, gets the settings.</summary>
    public static ProcessStartInfo Prepare(ProcessStartInfo start)
    {
        start.Environment["DOTNET_TieredPGO"] = "0";
        start.Environment["DOTNET_TC_CallCountingDelayMs"] = OptimizationDelay;
        return start;
    }
}
