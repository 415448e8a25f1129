using System.Globalization;
using Kahuna.Tests.Tools.Compare;
using Kahuna.Tests.Tools.Cost;
using Kahuna.Tests.Tools.Failover;
using Kahuna.Tests.Tools.Scale;
using Kahuna.Tests.Tools.Serial;

namespace Kahuna.Tests.Tools;

/// <summary>
/// The command <c>measure</c>, which the measuring scripts run: the name of a script and its options. Returns 0 when it
/// has measured, 1 when it could not, 2 for bad usage, and 128 and the signal's number after a signal. Stateless.
/// </summary>
internal static class MeasureCommand
{
    /// <summary>The programs by the names of their scripts, with the defaults of their options.</summary>
    private static readonly Dictionary<string, (string Defaults, Action<Measurement> Run)> s_programs =
        new(StringComparer.Ordinal)
        {
            ["access"] = (AccessCommand.Defaults, AccessCommand.Run),
            ["compare"] = (CompareCommand.Defaults, CompareCommand.Run),
            ["cost"] = (CostCommand.Defaults, CostCommand.Run),
            ["failover"] = (FailoverCommand.Defaults, FailoverCommand.Run),
            ["idle_connections"] = (IdleConnections.Defaults, IdleConnections.Run),
            ["memory"] = (MemoryCommand.Defaults, MemoryCommand.Run),
            ["option-cost"] = (OptionCostCommand.Defaults, OptionCostCommand.Run),
            ["partitions"] = ("", PartitionsCommand.Run),
            ["batches"] = (BatchesCommand.Defaults, BatchesCommand.Run),
            ["scans"] = (ScansCommand.Defaults, ScansCommand.Run),
            ["watches"] = (WatchesCommand.Defaults, WatchesCommand.Run),
            ["serial"] = (SerialCommand.Defaults, SerialCommand.Run),
            ["scale"] = (ScaleCommand.Defaults, ScaleCommand.Run),
        };

    public static int Run(string[] arguments, TextWriter output, TextWriter errors)
    {
        CultureInfo.CurrentCulture = CultureInfo.InvariantCulture;
        if (arguments.Length == 0 || !s_programs.TryGetValue(arguments[0], out var program))
        {
            errors.WriteLine($"measure: the first argument must be one of: {string.Join(", ", s_programs.Keys)}");
            return 2;
        }

        if (MeasureOptions.Read(program.Defaults, arguments[1..]) is not { } options)
        {
            errors.WriteLine($"measure: unknown option; scripts/{arguments[0]}.sh --help names those that there are");
            return 2;
        }

        using Measurement measurement = new(arguments[0], options, output, errors);
        try
        {
            program.Run(measurement);
            return 0;
        }
        catch (OperationCanceledException) when (measurement.EndedBy != 0)
        {
            return 128 + measurement.EndedBy;
        }
        catch (Exception failure)
        {
            measurement.Say(failure is MeasureException ? failure.Message : failure.ToString());
            return 1;
        }
    }
}
