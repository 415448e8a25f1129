using System.Text;
using System.Text.Json;
using Kahuna.Benchmark.Running;
using Kahuna.Benchmark.Targets;

namespace Kahuna.Tests.Benchmark;

/// <summary>What a run of the tool returned and wrote. Immutable.</summary>
internal sealed record BenchOutcome(int ExitCode, string Output, string Error)
{
    public JsonElement Json => JsonDocument.Parse(Output).RootElement;

    public string[] ErrorLines => Error.Split('\n', StringSplitOptions.RemoveEmptyEntries);

    /// <summary>Runs the tool in this process against <paramref name="target"/>.</summary>
    public static async Task<BenchOutcome> RunAsync(ITarget target, string arguments, bool isTerminal = false, CancellationToken stop = default)
    {
        using MemoryStream output = new();
        using StreamWriter outputText = new(output, new UTF8Encoding(false)) { AutoFlush = true };
        using StringWriter error = new();
        BenchStreams streams = new(output, outputText, error, isTerminal, isTerminal);
        int code = await new BenchApp(streams, _ => target).RunAsync(arguments.Split(' ', StringSplitOptions.RemoveEmptyEntries), stop);
        return new BenchOutcome(code, Encoding.UTF8.GetString(output.ToArray()), error.ToString());
    }
}
