using System.Globalization;
using System.Text;
using System.Text.Json;
using Kahuna.Benchmark;
using Kahuna.Benchmark.Targets;
using Kahuna.Benchmark.Workloads;

namespace Kahuna.Tests.Benchmark;

/// <summary>What a run of the tool returned and wrote. Immutable.</summary>
internal sealed record BenchOutcome(int ExitCode, string Output, string Error)
{
    public JsonElement Json => JsonDocument.Parse(Output).RootElement;

    public string[] ErrorLines => Error.Split('\n', StringSplitOptions.RemoveEmptyEntries);

    /// <summary>Runs the tool in this process against <paramref name="target"/>.</summary>
    public static async Task<BenchOutcome> RunAsync(
        ITarget target,
        string arguments,
        bool isTerminal = false,
        IReadOnlyList<Workload>? workloads = null,
        CancellationToken stop = default)
    {
        using MemoryStream output = new();
        using StreamWriter outputText = new(output, new UTF8Encoding(false)) { AutoFlush = true };
        using StringWriter error = new();
        BenchStreams streams = new(output, outputText, error, isTerminal, isTerminal);
        BenchApp app = new(streams, workloads ?? WorkloadList.All, _ => target);
        int code = await app.RunAsync(arguments.Split(' ', StringSplitOptions.RemoveEmptyEntries), stop);
        return new BenchOutcome(code, Encoding.UTF8.GetString(output.ToArray()), error.ToString());
    }

    /// <summary>
    /// Runs the tool for 0.05 s, and for twice as long as before until <paramref name="isEnough"/> (if null: one
    /// request was answered). A short run on a busy machine may send nothing, which is no finding.
    /// </summary>
    public static async Task<BenchOutcome> RunLongEnoughAsync(
        ITarget target,
        string arguments,
        Func<BenchOutcome, bool>? isEnough = null,
        IReadOnlyList<Workload>? workloads = null)
    {
        isEnough ??= static outcome => !outcome.Error.Contains("no request was answered", StringComparison.Ordinal);
        BenchOutcome outcome;
        double seconds = 0.05;
        do
        {
            string line = string.Create(CultureInfo.InvariantCulture, $"{arguments} --duration {seconds}");
            outcome = await RunAsync(target, line, workloads: workloads);
            seconds *= 2;
        }
        while (!isEnough(outcome) && seconds < 60);
        return outcome;
    }
}
