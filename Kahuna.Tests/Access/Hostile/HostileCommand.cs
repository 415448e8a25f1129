using System.Globalization;
using Kahuna.Tests.Cluster.Soak;

namespace Kahuna.Tests.Access.Hostile;

/// <summary>
/// The command hostile, which scripts/hostile.sh runs. Returns 0 when nothing is wrong, 1 when something is, and 2 for
/// bad usage. Stateless; any thread.
/// </summary>
internal static class HostileCommand
{
    private const string Usage = "usage: hostile [--minutes M] [--seed N]; scripts/hostile.sh --help tells more";

    public static int Run(string[] arguments, TextWriter output, TextWriter errors)
    {
        TimeSpan duration = TimeSpan.FromMinutes(10);
        int seed = Random.Shared.Next(1, 1_000_000);
        CultureInfo culture = CultureInfo.InvariantCulture;
        for (int i = 0; i < arguments.Length; i += 2)
        {
            string value = i + 1 < arguments.Length ? arguments[i + 1] : "";
            if (arguments[i] == "--minutes"
                && double.TryParse(value, NumberStyles.AllowDecimalPoint, culture, out double minutes)
                && minutes is > 0 and <= 100_000)
            {
                duration = TimeSpan.FromMinutes(minutes);
            }
            else if (arguments[i] != "--seed" || !int.TryParse(value, NumberStyles.None, culture, out seed))
            {
                errors.WriteLine($"hostile: {arguments[i]} is unknown, or its value is no use");
                errors.WriteLine(Usage);
                return 2;
            }
        }

        try
        {
            HostileRun run = new(duration, seed, new WriterOutput(output));
            output.WriteLine($"clean: {run.RunAsync().GetAwaiter().GetResult()}");
            return 0;
        }
        catch (Exception wrong)
        {
            output.WriteLine(
                $"WRONG: {(wrong is SoakException or TimeoutException ? wrong.Message : wrong.ToString())}");
            return 1;
        }
    }
}
