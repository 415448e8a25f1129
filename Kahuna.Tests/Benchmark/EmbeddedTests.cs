using System.Text.Json;

namespace Kahuna.Tests.Benchmark;

/// <summary>The tool against real nodes in its own process, through the public client.</summary>
public sealed class EmbeddedTests
{
    [Theory]
    [InlineData("embedded", 1)]
    [InlineData("embedded:3", 3)]
    public async Task Mixed_run_against_embedded_nodes(string source, int nodes)
    {
        string temporary = Directory.CreateTempSubdirectory("kahuna-bench-embedded-").FullName;
        try
        {
            System.Diagnostics.ProcessStartInfo start = new(
                "dotnet",
                [
                    Path.Combine(AppContext.BaseDirectory, "kahuna-bench.dll"),
                    "-c",
                    source,
                    "--duration",
                    "5",
                    "--warmup",
                    "0.5",
                    "--key-space",
                    "500",
                    "--format",
                    "json",
                ]);
            start.Environment["TMPDIR"] = temporary;
            using BenchProcess process = new(start);
            BenchOutcome outcome = await process.WaitAsync();
            Assert.True(outcome.ExitCode == 0, outcome.Error);
            JsonElement json = outcome.Json;
            Assert.Equal("embedded", json.GetProperty("mode").GetProperty("name").GetString());
            Assert.Equal(nodes, json.GetProperty("mode").GetProperty("nodes").GetInt32());
            Assert.Equal(nodes, json.GetProperty("parameters").GetProperty("endpoints").GetArrayLength());
            Assert.Equal(2, json.GetProperty("operations").GetArrayLength());
            Assert.All(json.GetProperty("operations").EnumerateArray(), row =>
            {
                Assert.True(row.GetProperty("count").GetInt64() > 0, outcome.Error);
                Assert.Equal(0, row.GetProperty("errors").GetInt64());
                Assert.Equal(0, row.GetProperty("timeouts").GetInt64());
                Assert.Equal(0, row.GetProperty("misses").GetInt64());
            });

            // The nodes' data is gone with them.
            Assert.Empty(Directory.EnumerateDirectories(temporary, "kahuna-*"));
        }
        finally
        {
            Directory.Delete(temporary, recursive: true);
        }
    }
}
