using System.Text.Json;
using Kahuna.Benchmark.Targets;
using Kahuna.Tests.Hosting;

namespace Kahuna.Tests.Benchmark;

/// <summary>Every option: what it accepts, and the one line that refuses what it does not.</summary>
public sealed class OptionTests
{
    private const string Endpoint = "-c https://127.0.0.1:8082 ";

    [Theory]
    [InlineData("", "'--connection-source' is required")]
    [InlineData("-c", "'-c'")]
    [InlineData("-c ftp://a:1", "--connection-source: 'ftp://a:1' is not an endpoint")]
    [InlineData("-c http://a:1", "--connection-source: 'http://a:1' is not an endpoint such as https://")]
    [InlineData("-c https://a:1,,https://b:1", "--connection-source: '' is not an endpoint")]
    [InlineData("-c https://a:1/path", "--connection-source: 'https://a:1/path'")]
    [InlineData("-c https://a:99999", "--connection-source: 'https://a:99999'")]
    [InlineData("-c embedded:0", "--connection-source: 'embedded:0'")]
    [InlineData("-c embedded:10", "--connection-source: 'embedded:10'")]
    [InlineData("-c embedded:x", "--connection-source: 'embedded:x'")]
    [InlineData("-c embedded --target redis", "--connection-source: 'embedded' starts Kahuna nodes")]
    [InlineData("-c https://a:1 --target etcd", "--connection-source: 'https://a:1' is not an endpoint such as http://")]
    [InlineData("-c http://a:1 --target redis", "--connection-source: 'http://a:1' is not an endpoint such as redis://")]
    [InlineData(Endpoint + "--workload scan", "--workload: 'scan' is not set, get, mixed, lock, handover, sequence, script, batch, transaction or interactive")]
    [InlineData(Endpoint + "--workload sequence --durability ephemeral", "--durability: sequences are persistent only")]
    [InlineData("-c http://127.0.0.1:2379 --target etcd --workload sequence", "--workload: etcd has no 'sequence'; with --target etcd use set, get, mixed or transaction.")]
    [InlineData(Endpoint + "--workload set --verify", "--verify needs --workload lock or sequence")]
    [InlineData(Endpoint + "--script a.4gl", "--script needs --workload script")]
    [InlineData(Endpoint + "--workload script --script no-such-file.4gl", "--script: 'no-such-file.4gl' does not exist.")]
    [InlineData(Endpoint + "--workload script --script .", "--script: '.' cannot be read: ")]
    [InlineData("-c http://127.0.0.1:2379 --target etcd --workload script", "--workload: etcd has no 'script'")]
    [InlineData("-c 127.0.0.1 --target redis --workload transaction", "use set, get, mixed or script.")]
    [InlineData("-c 127.0.0.1 --target etcd --workload transaction --partitions 2", "--partitions: etcd has no partitions.")]
    [InlineData(Endpoint + "--workload transaction --reads -1", "--reads: '-1' is not a whole number from 0 to 100")]
    [InlineData(Endpoint + "--workload transaction --reads 0 --writes 0", "--reads: a transaction without reads needs")]
    [InlineData(Endpoint + "--workload interactive --partitions 5", "--partitions: 2 --reads and 2 --writes are fewer than 5.")]
    [InlineData(Endpoint + "--reads 2", "--reads needs --workload transaction or interactive.")]
    [InlineData(Endpoint + "--workload batch --items 101 --key-space 100", "--items: there are only 100 keys (--key-space).")]
    [InlineData("-c http://localhost:2379 --target etcd --durability ephemeral", "--durability: 'ephemeral' is a level of Kahuna")]
    [InlineData(Endpoint + "--durability none", "--durability: 'none' is not persistent or ephemeral")]
    [InlineData(Endpoint + "--duration 0", "--duration: '0' is not a number of seconds above 0 to 86400")]
    [InlineData(Endpoint + "--duration -1", "--duration: '-1'")]
    [InlineData(Endpoint + "--duration 1,5", "--duration: '1,5'")]
    [InlineData(Endpoint + "--duration NaN", "--duration: 'NaN'")]
    [InlineData(Endpoint + "--duration 1e9", "--duration: '1e9'")]
    [InlineData(Endpoint + "--duration 86401", "--duration: '86401'")]
    [InlineData(Endpoint + "--warmup -1", "--warmup: '-1' is not a number of seconds from 0 to 86400")]
    [InlineData(Endpoint + "--warmup soon", "--warmup: 'soon'")]
    [InlineData(Endpoint + "--concurrency 0", "--concurrency: '0' is not a whole number from 1 to")]
    [InlineData(Endpoint + "--concurrency 1.5", "--concurrency: '1.5'")]
    [InlineData(Endpoint + "--concurrency 100001", "--concurrency: '100001'")]
    [InlineData(Endpoint + "--rate -1", "--rate: '-1'")]
    [InlineData(Endpoint + "--rate fast", "--rate: 'fast'")]
    [InlineData(Endpoint + "--rate 10000001", "--rate: '10000001'")]
    [InlineData(Endpoint + "--key-space 0", "--key-space: '0'")]
    [InlineData(Endpoint + "--key-space 99999999999", "--key-space: '99999999999'")]
    [InlineData(Endpoint + "--value-size -1", "--value-size: '-1'")]
    [InlineData(Endpoint + "--value-size 16777217", "--value-size: '16777217' is not a whole number from 0 to 16777216")]
    [InlineData(Endpoint + "--read-pct 101", "--read-pct: '101' is not a whole number from 0 to 100")]
    [InlineData(Endpoint + "--read-pct -1", "--read-pct: '-1'")]
    [InlineData(Endpoint + "--timeout 0", "--timeout: '0' is not a number of seconds above 0 to 300")]
    [InlineData(Endpoint + "--timeout 301", "--timeout: '301'")]
    [InlineData(Endpoint + "--format xml", "--format: 'xml' is not console, json or csv")]
    [InlineData(Endpoint + "--format JSON", "--format: 'JSON' is not console, json or csv")]
    [InlineData(Endpoint + "--output report.json", "--output needs --format json or --format csv")]
    [InlineData(Endpoint + "--format json --output no-such-folder/report.json", "--output: 'no-such-folder/report.json' is not a file in an existing folder")]
    [InlineData(Endpoint + "--hlog no-such-folder/a.hlog", "--hlog: 'no-such-folder/a.hlog' is not a file in an existing folder")]
    [InlineData(Endpoint + "--seed-keys -1", "--seed-keys: '-1' is not a whole number from 0 to")]
    [InlineData(Endpoint + "--seed-keys 11 --key-space 10", "--seed-keys: there are only 10 keys")]
    [InlineData(Endpoint + "--seed x", "--seed: 'x' is not a whole number")]
    [InlineData(Endpoint + "--target mysql", "--target: 'mysql' is not kahuna, etcd or redis")]
    [InlineData(Endpoint + "--connections -1", "--connections: '-1'")]
    [InlineData(Endpoint + "--max-errors -1", "--max-errors: '-1'")]
    [InlineData(Endpoint + "--connect-timeout 0", "--connect-timeout: '0' is not a number of seconds above 0")]
    [InlineData(Endpoint + "--user app", "--user needs --password-file.")]
    [InlineData(Endpoint + "--password-file p", "--password-file needs --user.")]
    [InlineData(Endpoint + "--client-certificate-key k", "--client-certificate-key needs --client-certificate.")]
    [InlineData(Endpoint + "--user app --password-file p --token-file t", "--user and --token-file contradict each other.")]
    [InlineData(Endpoint + "--token-file t --client-certificate c", "--token-file and --client-certificate contradict each other.")]
    [InlineData(Endpoint + "--token-file no-such-file", "--token-file: the file \"no-such-file\" does not exist.")]
    [InlineData(Endpoint + "--user app --password-file no-such-file", "--password-file: the file \"no-such-file\" does not exist.")]
    [InlineData(Endpoint + "--user a:b --password-file p", "--user: The credentials cannot be used: the user's name must have")]
    [InlineData(Endpoint + "--client-certificate no-such-file", "--client-certificate: the client certificate \"no-such-file\" cannot be used: ")]
    [InlineData("-c embedded --token-file t", "--token-file needs the endpoints of a Kahuna cluster.")]
    [InlineData("-c 127.0.0.1 --target redis --token-file t", "--token-file needs the endpoints of a Kahuna cluster.")]
    [InlineData(Endpoint + "--no-such-option", "'--no-such-option'")]
    [InlineData(Endpoint + "stray", "'stray'")]
    [InlineData(Endpoint + "--duration 1 --duration 2", "'--duration'")]
    public async Task Wrong_value_gets_one_line_and_exit_code_1(string arguments, string expected)
    {
        using FakeTargetScope target = new();
        BenchOutcome outcome = await BenchOutcome.RunAsync(target.Target, arguments);
        Assert.Equal(1, outcome.ExitCode);
        Assert.Empty(outcome.Output);
        string line = Assert.Single(outcome.ErrorLines);
        Assert.StartsWith("kahuna-bench: ", line, StringComparison.Ordinal);
        Assert.Contains(expected, line, StringComparison.Ordinal);
    }

    [Theory]
    [InlineData("--help")]
    [InlineData("-h")]
    public async Task Help_names_every_option(string argument)
    {
        BenchOutcome outcome = await BenchOutcome.RunAsync(new FakeTarget(), argument);
        Assert.Equal(0, outcome.ExitCode);
        Assert.Empty(outcome.Error);
        string[] names =
        [
            "-c, --connection-source",
            "--workload",
            "--duration",
            "--warmup",
            "--concurrency",
            "--rate",
            "--key-space",
            "--value-size",
            "--read-pct",
            "--durability",
            "--script",
            "--timeout",
            "--format",
            "--output",
            "--insecure",
            "--seed",
            "--target",
            "--max-errors",
            "--connect-timeout",
            "--user",
            "--password-file",
            "--token-file",
            "--client-certificate",
            "--client-certificate-key",
            "--version",
        ];
        Assert.All(names, name => Assert.Contains(name, outcome.Output, StringComparison.Ordinal));
    }

    [Theory]
    [InlineData("", "is empty")]
    [InlineData("a\nb", "has more than one line")]
    [InlineData("s3cret word", "the token must have")]
    public async Task A_file_without_a_usable_token_is_refused(string content, string expected)
    {
        using TemporaryDirectory directory = new();
        string path = Path.Combine(directory.Path, "token");
        await File.WriteAllTextAsync(path, content);
        BenchOutcome outcome = await BenchOutcome.RunAsync(new FakeTarget(), $"{Endpoint}--token-file {path}");
        Assert.Equal(1, outcome.ExitCode);
        string line = Assert.Single(outcome.ErrorLines);
        Assert.Contains(expected, line, StringComparison.Ordinal);
        Assert.DoesNotContain("s3cret", line, StringComparison.Ordinal);
    }

    [Theory]
    [InlineData(UnixFileMode.UserRead, false)]
    [InlineData(UnixFileMode.UserRead | UnixFileMode.GroupRead, true)]
    [InlineData(UnixFileMode.UserRead | UnixFileMode.OtherRead, true)]
    public async Task A_secret_that_others_can_read_is_told(UnixFileMode mode, bool isTold)
    {
        using TemporaryDirectory directory = new();
        string path = Path.Combine(directory.Path, "token");
        await File.WriteAllTextAsync(path, "s3cret\n");
        if (OperatingSystem.IsWindows())
        {
            return;
        }

        File.SetUnixFileMode(path, mode);
        BenchOutcome outcome = await BenchOutcome.RunLongEnoughAsync(
            new FakeTarget(), $"{Endpoint}--warmup 0 --workload set --token-file {path}");
        Assert.Equal(0, outcome.ExitCode);
        Assert.Equal(isTold, outcome.Error.Contains(
            $"kahuna-bench: --token-file: other users of this machine can read '{path}'.", StringComparison.Ordinal));
        Assert.DoesNotContain("s3cret", outcome.Output + outcome.Error, StringComparison.Ordinal);
    }

    [Fact]
    public async Task Version_is_one_line()
    {
        BenchOutcome outcome = await BenchOutcome.RunAsync(new FakeTarget(), "--version");
        Assert.Equal(0, outcome.ExitCode);
        Assert.Matches(@"^\d+\.\d+\.\d+\S*\n$", outcome.Output);
    }

    [Fact]
    public async Task Defaults_are_those_of_the_contract()
    {
        BenchOutcome outcome = await BenchOutcome.RunAsync(new FakeTarget(), "-c https://10.0.0.1:8082 --duration 0.05 --warmup 0 --format json");
        JsonElement parameters = outcome.Json.GetProperty("parameters");
        Assert.Equal("mixed", parameters.GetProperty("workload").GetString());
        Assert.Equal(64, parameters.GetProperty("concurrency").GetInt32());
        Assert.Equal(0, parameters.GetProperty("rate").GetInt32());
        Assert.Equal(10_000, parameters.GetProperty("keySpace").GetInt32());
        Assert.Equal(128, parameters.GetProperty("valueSize").GetInt32());
        Assert.Equal(50, parameters.GetProperty("readPct").GetInt32());
        Assert.Equal("persistent", parameters.GetProperty("durability").GetString());
        Assert.Equal(10, parameters.GetProperty("timeout").GetInt32());
        Assert.Equal("kahuna", parameters.GetProperty("target").GetString());
        Assert.False(parameters.GetProperty("insecure").GetBoolean());
        Assert.NotEqual(0, parameters.GetProperty("seed").GetInt64());
        Assert.Equal(JsonValueKind.Null, parameters.GetProperty("script").ValueKind);

        string help = (await BenchOutcome.RunAsync(new FakeTarget(), "--help")).Output;
        Assert.Matches(@"--duration .*\[default: 30\]", help);
        Assert.Matches(@"--warmup .*\[default: 5\]", help);
        Assert.Matches(@"--format .*\[default: console\]", help);
    }

    [Theory]
    [InlineData("https://localhost:1", "", "disabled (localhost)", true)]
    [InlineData("https://localhost:1,https://127.0.0.1:2,https://[::1]:3", "", "disabled (localhost)", true)]
    [InlineData("https://localhost:1,https://10.0.0.1:2", "", "enabled", false)]
    [InlineData("https://10.0.0.1:2", "--insecure", "disabled (--insecure)", true)]
    public async Task Certificates_are_validated_unless_all_endpoints_are_local(
        string endpoints, string more, string text, bool insecure)
    {
        BenchOutcome outcome = await BenchOutcome.RunAsync(
            new FakeTarget(), $"-c {endpoints} {more} --workload set --duration 0.05 --warmup 0 --format json");
        Assert.Contains($"tls       : {text}\n", outcome.Error.ReplaceLineEndings("\n"), StringComparison.Ordinal);
        Assert.Equal(insecure, outcome.Json.GetProperty("parameters").GetProperty("insecure").GetBoolean());
    }

    [Theory]
    [InlineData("a", TargetKind.Kahuna, "https://a:8082/")]
    [InlineData("a:443", TargetKind.Kahuna, "https://a/")]
    [InlineData("https://a:9000", TargetKind.Kahuna, "https://a:9000/")]
    [InlineData("[::1]:9000", TargetKind.Kahuna, "https://[::1]:9000/")]
    [InlineData("a", TargetKind.Etcd, "http://a:2379/")]
    [InlineData("redis://a", TargetKind.Redis, "redis://a:6379/")]
    [InlineData("127.0.0.1:7000", TargetKind.Redis, "redis://127.0.0.1:7000/")]
    internal void Endpoints_may_leave_out_scheme_and_port(string text, TargetKind target, string expected)
    {
        Kahuna.Benchmark.Options.ConnectionSource? source = Kahuna.Benchmark.Options.ConnectionSource.Parse(
            text, target, out string? error);
        Assert.Null(error);
        Assert.Equal(expected.TrimEnd('/'), source!.Endpoints.Single().AbsoluteUri.TrimEnd('/'));
    }

    /// <summary>A target that must not be reached.</summary>
    private sealed class FakeTargetScope : IDisposable
    {
        private int _requests;

        public FakeTargetScope() => Target = new FakeTarget((_, _, _) =>
        {
            Interlocked.Increment(ref _requests);
            return new ValueTask<OperationResult>(OperationResult.Success);
        });

        public FakeTarget Target { get; }

        public void Dispose() => Assert.Equal(0, _requests);
    }
}
