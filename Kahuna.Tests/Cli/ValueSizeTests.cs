using System.Text;
using Kahuna.Cli.Errors;
using Kahuna.Tests.Hosting;

namespace Kahuna.Tests.Cli;

/// <summary>The largest value, and one byte more, by every way in which the tool takes values.</summary>
[Collection(CliClusterCollection.Name)]
public sealed class ValueSizeTests(CliCluster cluster) : IDisposable
{
    private const int Largest = 1 << 20;
    private readonly CliTool _tool = cluster.Tool();
    private readonly TemporaryDirectory _directory = new();

    public void Dispose() => _directory.Dispose();

    [Theory]
    [InlineData("argument")]
    [InlineData("file")]
    [InlineData("input")]
    [InlineData("base64")]
    [InlineData("tx")]
    [InlineData("tx in base64")]
    public async Task A_value_of_a_mebibyte_passes_and_a_byte_more_is_refused_in_one_line(string way)
    {
        string key = $"sizes/{way}";
        (await SetAsync(way, key, Largest)).Done();
        Assert.Equal(Largest, (await _tool.RunAsync("get", key)).Done().Bytes.Length);
        CliResult refused = (await SetAsync(way, key, Largest + 1)).Ended(ExitCode.Usage);
        Assert.StartsWith("kahuna: ", refused.Error, StringComparison.Ordinal);
        refused.Tells("1,048,577 bytes");
        refused.Tells("1,048,576");
        Assert.Equal(Largest, (await _tool.RunAsync("get", key)).Done().Bytes.Length);
    }

    private Task<CliResult> SetAsync(string way, string key, int length)
    {
        string value = new('v', length);
        string base64 = Convert.ToBase64String(Encoding.UTF8.GetBytes(value));
        return way switch
        {
            "argument" => _tool.RunAsync("set", key, value),
            "file" => _tool.RunAsync("set", key, "--value-file", _directory.File($"{length}", value)),
            "input" => _tool.RunAsync(["set", key, "-"], value, default),
            "base64" => _tool.RunAsync(["set", key, "-", "--base64"], base64, default),
            "tx" => _tool.RunAsync(["tx"], $$"""{"then":[{"set":"{{key}}","value":"{{value}}"}]}""", default),
            _ => _tool.RunAsync(["tx"], $$"""{"then":[{"set":"{{key}}","valueBase64":"{{base64}}"}]}""", default),
        };
    }
}
