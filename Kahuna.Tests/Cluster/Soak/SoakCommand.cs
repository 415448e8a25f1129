namespace Kahuna.Tests.Cluster.Soak;

/// <summary>
/// The command soak, which scripts/soak.sh runs. Returns 0 when nothing is wrong, 1 when something is, and 2 for bad
/// usage. Stateless; any thread.
/// </summary>
internal static class SoakCommand
{
    public static int Run(string[] arguments, TextWriter output, TextWriter errors)
    {
        if (SoakOptions.Parse(arguments, out string? refusal) is not { } options)
        {
            errors.WriteLine($"soak: {refusal}");
            errors.WriteLine(SoakOptions.Usage);
            return 2;
        }

        try
        {
            string done = new SoakRun(options, new WriterOutput(output)).RunAsync().GetAwaiter().GetResult();
            output.WriteLine($"clean: {done}");
            return 0;
        }
        catch (Exception wrong)
        {
            output.WriteLine();
            output.WriteLine(
                $"WRONG: {(wrong is SoakException or TimeoutException ? wrong.Message : wrong.ToString())}");
            return 1;
        }
    }
}
