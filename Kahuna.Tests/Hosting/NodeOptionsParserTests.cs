using System.Collections;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Primitives;
using Microsoft.Extensions.Logging;

namespace Kahuna.Tests.Hosting;

/// <summary>Every option from every source, and each refusal as one line.</summary>
public sealed class NodeOptionsParserTests : IDisposable
{
    private const string ThreePeers = "1=https://a:8082,2=https://b:8082,3=https://c:8082";

    private readonly TemporaryDirectory _directory = new();
    private readonly string _secret;

    public NodeOptionsParserTests() => _secret = _directory.File("secret", "0123456789abcdef0123456789abcdef\n");

    public void Dispose() => _directory.Dispose();

    [Fact]
    public void Nothing_gives_a_standalone_node()
    {
        NodeOptions options = Good([]);

        Assert.True(options.IsStandalone);
        Assert.Equal(new NodeId(1), options.NodeId);
        Assert.Equal(new Uri("https://127.0.0.1:8082"), Assert.Single(options.Listen));
        Assert.Equal(new Uri("https://127.0.0.1:8082"), options.Advertise);
        Assert.Equal(new PeerNode(new NodeId(1), options.Advertise), Assert.Single(options.Peers));
        Assert.Equal(NodeOptions.PartitionsFor(Environment.ProcessorCount), options.Partitions);
        Assert.False(options.PartitionsGiven);
        Assert.Equal(LeaderPlacement.Together, options.LeaderPlacement);
        Assert.Equal(16_000_000_000, options.LogLimitBytes);
        Assert.Equal(512_000_000, options.LogKeepBytes);
        Assert.Equal(
            Math.Clamp(12_000_000L * Environment.ProcessorCount, 24_000_000, 128_000_000),
            options.BackgroundBytesPerSecond);
        Assert.Equal(StateStoreChoice.Auto, options.StateStore);
        Assert.False(options.Rebuild);
        Assert.False(options.RebuildConfirmed);
        Assert.Equal(1 << 20, options.ValueBytesMax);
        Assert.Equal("kahuna", options.ClusterId);
        Assert.Equal(LogLevel.Information, options.LogLevel);
        Assert.Null(options.CertificatePath);
        Assert.Null(options.TracePath);
        Assert.EndsWith(Path.Combine("kahuna", "data", "kahuna-1"), options.DataDirectory, StringComparison.Ordinal);
        Assert.True(Path.IsPathRooted(options.DataDirectory));
    }

    [Fact]
    public void Every_option_of_the_command_line_arrives()
    {
        string certificate = _directory.File("cert.pem", "x");
        string key = _directory.File("key.pem", "x");
        string ca = _directory.File("ca.pem", "x");
        string trace = Path.Combine(_directory.Path, "trace.jsonl");
        NodeOptions options = Good(
        [
            "--node-id", "2", "--listen", "https://0.0.0.0:8082,https://[::1]:9000", "--advertise", "https://b:8082", "--peers", "3=https://c:8082,1=https://a:8082,2=https://b:8082",
            "--data",
            _directory.Path,
            "--partitions",
            "8",
            "--leaders",
            "spread",
            "--log-limit",
            "64MiB",
            "--log-keep",
            "20MB",
            "--background-rate",
            "5MB",
            "--state-store",
            "files",
            "--rebuild",
            "--yes",
            "--max-value-bytes",
            "16MiB",
            "--certificate",
            certificate,
            "--certificate-key",
            key,
            "--trusted-ca",
            ca,
            "--cluster-secret-file",
            _secret,
            "--cluster-id",
            "blue-1",
            "--log-level",
            "Warning",
            "--log-format",
            "json",
            "--trace",
            trace,
        ]);

        Assert.Equal(new NodeId(2), options.NodeId);
        Assert.Equal([new Uri("https://0.0.0.0:8082"), new Uri("https://[::1]:9000")], options.Listen);
        Assert.Equal(new Uri("https://b:8082"), options.Advertise);
        Assert.Equal([1, 2, 3], options.Peers.Select(peer => (int)peer.Id.Value));
        Assert.Equal(_directory.Path, options.DataDirectory);
        Assert.Equal(8, options.Partitions);
        Assert.True(options.PartitionsGiven);
        Assert.Equal(LeaderPlacement.Spread, options.LeaderPlacement);
        Assert.Equal(64 << 20, options.LogLimitBytes);
        Assert.Equal(20_000_000, options.LogKeepBytes);
        Assert.Equal(5_000_000, options.BackgroundBytesPerSecond);
        Assert.Equal(StateStoreChoice.Files, options.StateStore);
        Assert.True(options.Rebuild);
        Assert.True(options.RebuildConfirmed);
        Assert.Equal(16 << 20, options.ValueBytesMax);
        Assert.Equal(
            (certificate, key, ca, _secret),
            (options.CertificatePath, options.CertificateKeyPath, options.TrustedCaPath, options.ClusterSecretFile));
        Assert.Equal("blue-1", options.ClusterId);
        Assert.Equal(LogLevel.Warning, options.LogLevel);
        Assert.Equal(LogFormat.Json, options.LogFormat);
        Assert.Equal(trace, options.TracePath);
        Assert.False(options.IsStandalone);
    }

    [Theory]
    [InlineData("--node-id", "KAHUNA_NODE_ID", "nodeId", "7")]
    [InlineData("--listen", "KAHUNA_LISTEN", "listen", "https://127.0.0.1:9001")]
    [InlineData("--advertise", "KAHUNA_ADVERTISE", "advertise", "https://host:9001")]
    [InlineData("--data", "KAHUNA_DATA", "data", "/var/lib/somewhere")]
    [InlineData("--partitions", "KAHUNA_PARTITIONS", "partitions", "5")]
    [InlineData("--leaders", "KAHUNA_LEADERS", "leaders", "spread")]
    [InlineData("--log-limit", "KAHUNA_LOG_LIMIT", "logLimit", "3GB")]
    [InlineData("--log-keep", "KAHUNA_LOG_KEEP", "logKeep", "1GB")]
    [InlineData("--reads", "KAHUNA_READS", "reads", "lease")]
    [InlineData("--background-rate", "KAHUNA_BACKGROUND_RATE", "backgroundRate", "2MB")]
    [InlineData("--watch-history", "KAHUNA_WATCH_HISTORY", "watchHistory", "200MB")]
    [InlineData("--feature-level-max", "KAHUNA_FEATURE_LEVEL_MAX", "featureLevelMax", "3")]
    [InlineData("--ephemeral-patience", "KAHUNA_EPHEMERAL_PATIENCE", "ephemeralPatience", "90s")]
    [InlineData("--state-store", "KAHUNA_STATE_STORE", "stateStore", "rocksdb")]
    [InlineData("--max-value-bytes", "KAHUNA_MAX_VALUE_BYTES", "maxValueBytes", "4096")]
    [InlineData("--cluster-id", "KAHUNA_CLUSTER_ID", "clusterId", "green")]
    [InlineData("--log-level", "KAHUNA_LOG_LEVEL", "logLevel", "debug")]
    [InlineData("--log-format", "KAHUNA_LOG_FORMAT", "logFormat", "json")]
    [InlineData("--trace", "KAHUNA_TRACE", "trace", "/trace.jsonl")]
    public void The_three_sources_mean_the_same(string flag, string variable, string key, string value)
    {
        NodeOptions fromFlag = Good([flag, value]);
        NodeOptions fromEnvironment = Good([], (variable, value));
        string file = _directory.File("options.json", $$"""{ "{{key}}": "{{value}}" }""");
        NodeOptions fromFile = Good(["--config", file]);

        Assert.NotEqual(Text(Good([])), Text(fromFlag));
        Assert.Equal(Text(fromFlag), Text(fromEnvironment));
        Assert.Equal(Text(fromFlag), Text(fromFile with { ConfigPath = null }));
        Assert.Equal(file, fromFile.ConfigPath);
    }

    [Fact]
    public void The_command_line_overrides_the_environment_which_overrides_the_file()
    {
        string file = _directory.File("options.json", """{ "nodeId": 1, "clusterId": "file", "partitions": 3 }""");
        NodeOptions options = Good(
            ["--node-id", "3"], ("KAHUNA_CONFIG", file), ("KAHUNA_NODE_ID", "2"), ("KAHUNA_CLUSTER_ID", "environment"));

        Assert.Equal(new NodeId(3), options.NodeId);
        Assert.Equal("environment", options.ClusterId);
        Assert.Equal(3, options.Partitions);
    }

    [Theory]
    [InlineData("""{ "node-id": 2, "peers": { "1": "https://a:8082", "2": "https://b:8082", "3": "https://c:8082" } }""")]
    [InlineData("""{ "NodeId": "2", "Peers": ["1=https://a:8082", "2=https://b:8082", "3=https://c:8082"], /* comments and trailing commas */ }""")]
    public void Json_may_hold_lists_objects_numbers_and_comments(string json)
    {
        NodeOptions options = Good(
            ["--config", _directory.File("options.json", json), "--cluster-secret-file", _secret]);

        Assert.Equal(new NodeId(2), options.NodeId);
        Assert.Equal(3, options.Peers.Count);
        Assert.Equal(new Uri("https://b:8082"), options.Advertise);
    }

    [Theory]
    [InlineData("Unknown option --node-i; did you mean --node-id?", "--node-i", "3")]
    [InlineData("Unknown option --bogus-and-far.", "--bogus-and-far", "3")]
    [InlineData("Unexpected argument 'serve'; every value follows its option.", "serve")]
    [InlineData("--data needs a value: --data <directory>.", "--data")]
    [InlineData("--node-id is given 2 times; give it once.", "--node-id", "1", "--node-id", "2")]
    [InlineData("--node-id: '0' is not a whole number from 1 to 65535.", "--node-id", "0")]
    [InlineData("--node-id: '65536' is not a whole number from 1 to 65535.", "--node-id", "65536")]
    [InlineData("--partitions: 'many' is not a whole number from 1 to 256.", "--partitions", "many")]
    [InlineData("--partitions: '257' is not a whole number from 1 to 256.", "--partitions", "257")]
    [InlineData("--feature-level-max: '0' is not a whole number from 1 to 65535.", "--feature-level-max", "0")]
    [InlineData("--leaders: 'apart' is not one of together, spread.", "--leaders", "apart")]
    [InlineData("--log-level: '3' is not one of trace, debug, information, warning, error, critical, none.", "--log-level", "3")]
    [InlineData("--log-format: 'xml' is not one of text, json.", "--log-format", "xml")]
    [InlineData("--listen: https://127.0.0.1:8082 can be reached from this machine only, but this node announces https://10.1.2.3:8082; leave --listen out, or listen on https://0.0.0.0:8082.", "--listen", "https://127.0.0.1:8082", "--advertise", "https://10.1.2.3:8082")]
    [InlineData("--listen: this node listens on https://127.0.0.1:9000 only, but announces https://127.0.0.1:8082; leave --listen out, or listen on port 8082.", "--listen", "https://127.0.0.1:9000", "--peers", "1=https://127.0.0.1:8082", "--node-id", "1")]
    [InlineData("--listen: this node listens on https://localhost:9000, https://[::1]:9001 only, but announces https://localhost:8082; leave --listen out, or listen on port 8082.", "--listen", "https://localhost:9000,https://[::1]:9001", "--advertise", "https://localhost:8082")]
    [InlineData("--log-limit: '16XB' is not a size; write it as 4096, 500KB, 64MiB or 16GB.", "--log-limit", "16XB")]
    [InlineData("--log-limit: 5 bytes; it must be at least 1000000 bytes.", "--log-limit", "5")]
    [InlineData("--log-keep: 15999999 bytes; it must be at least 16000000 bytes.", "--log-keep", "15999999")]
    [InlineData("--log-keep: 16000000000 bytes; it must be less than --log-limit, which is 16000000000 bytes.", "--log-keep", "16GB")]
    [InlineData("--log-keep: 20000000 bytes; it must be less than --log-limit, which is 20000000 bytes.", "--log-limit", "20MB", "--log-keep", "20MB")]
    [InlineData("--watch-history: 999999 bytes; it must be at least 1000000 bytes.", "--watch-history", "999999")]
    [InlineData("--ephemeral-patience: 'soon' is not a time; write it as 90s, 10min, 1h, 7d or forever.", "--ephemeral-patience", "soon")]
    [InlineData("--ephemeral-patience: 9 s; it must be from 10 s to 365 d, or forever.", "--ephemeral-patience", "9s")]
    [InlineData("--background-rate: 999999 bytes; it must be at least 1000000 bytes.", "--background-rate", "999999")]
    [InlineData("--state-store: 'disk' is not one of auto, rocksdb, files.", "--state-store", "disk")]
    [InlineData("--rebuild: a standalone node has no other node to restore its data from. To start empty, name another directory with --data.", "--rebuild")]
    [InlineData("--yes confirms --rebuild and needs it.", "--yes")]
    [InlineData("Unknown option --rebuilt; did you mean --rebuild?", "--rebuilt")]
    [InlineData("Unexpected argument 'true'; every value follows its option.", "--rebuild", "true")]
    [InlineData("--max-value-bytes: 16777217 bytes; it must be from 1 to 16777216 bytes.", "--max-value-bytes", "16777217")]
    [InlineData("--cluster-id: 'a b' is not a cluster id; use 1 to 64 of a-z, A-Z, 0-9, '-', '_' and '.', and begin with a letter, a digit or '_'.", "--cluster-id", "a b")]
    [InlineData("--listen: http://127.0.0.1:8082 is not https; every connection is encrypted.", "--listen", "http://127.0.0.1:8082")]
    [InlineData("--listen: 'nowhere' is not an address; write it as https://host:8082.", "--listen", "nowhere")]
    [InlineData("--listen: https://a:8082/path has more than scheme, host and port; write it as https://host:8082.", "--listen", "https://a:8082/path")]
    [InlineData("--listen: https://a:0 has port 0; name the port.", "--listen", "https://a:0")]
    [InlineData("--listen: https://a:1 is named twice.", "--listen", "https://a:1,https://a:1")]
    [InlineData("--advertise is missing: https://0.0.0.0:8082 listens on all interfaces; name the address by which others reach this node.", "--listen", "https://0.0.0.0:8082")]
    [InlineData("--advertise is missing: https://[::]:8082 listens on all interfaces; name the address by which others reach this node.", "--listen", "https://[::]:8082")]
    [InlineData("--advertise: clients cannot connect to https://0.0.0.0:8082; name a host or one address.", "--advertise", "https://0.0.0.0:8082")]
    [InlineData("--cluster-secret-file needs --peers; a standalone node has no peers.", "--cluster-secret-file", "SECRET")]
    [InlineData("--certificate needs --certificate-key as well.", "--certificate", "SECRET")]
    [InlineData("--certificate-key needs --certificate as well.", "--certificate-key", "SECRET")]
    [InlineData("--trusted-ca: there is no file /nowhere/ca.pem.", "--trusted-ca", "/nowhere/ca.pem")]
    [InlineData("--peer-tls needs --peers with other nodes.", "--peer-tls", "mutual")]
    [InlineData("--peer-tls: 'tls' is not one of secret, offer, mutual.", "--peer-tls", "tls", "--peers", ThreePeers, "--node-id", "1", "--cluster-secret-file", "SECRET")]
    [InlineData("--peer-tls needs --trusted-ca: the authorities of the nodes' certificates.", "--peer-tls", "mutual", "--certificate", "SECRET", "--certificate-key", "SECRET", "--peers", ThreePeers, "--node-id", "1", "--cluster-secret-file", "SECRET")]
    [InlineData("--connections-per-address: '-1' is not a whole number from 0 to 10000000.", "--connections-per-address", "-1")]
    [InlineData("--trace: there is no directory /nowhere.", "--trace", "/nowhere/trace.jsonl")]
    [InlineData("--trace: / is a directory, not a file.", "--trace", "/")]
    [InlineData("--config: cannot read /nowhere/options.json: Could not find a part of the path '/nowhere/options.json'.", "--config", "/nowhere/options.json")]
    public void A_wrong_option_is_refused_with_one_line(string expected, params string[] args) =>
        Bad(expected, [.. args.Select(arg => arg == "SECRET" ? _secret : arg)]);

    [Theory]
    [InlineData("--peers needs --node-id, the id of this node.", ThreePeers)]
    [InlineData("--peers does not name this node, whose id is 4.", ThreePeers, "--node-id", "4")]
    [InlineData("--peers: node id 1 is named 2 times.", "1=https://a:8082,1=https://b:8082,3=https://c:8082", "--node-id", "1")]
    [InlineData("--peers: nodes 1 and 2 have the same address https://a:8082.", "1=https://a:8082,2=https://a:8082,3=https://c:8082", "--node-id", "1")]
    [InlineData("--peers names 2 nodes; a cluster has 1, 3 or 5.", "1=https://a:8082,2=https://b:8082", "--node-id", "1")]
    [InlineData("--peers names 4 nodes; a cluster has 1, 3 or 5.", ThreePeers + ",4=https://d:8082", "--node-id", "1")]
    [InlineData("--peers: 'https://a:8082' is not a node; write each as id=url, like 2=https://host:8082, with ids from 1 to 65535.", "https://a:8082", "--node-id", "1")]
    [InlineData("--peers: node 1 at https://0.0.0.0:8082: other nodes cannot connect to an address that stands for all interfaces.", "1=https://0.0.0.0:8082", "--node-id", "1")]
    [InlineData("--advertise says https://x:8082, but --peers says https://a:8082 for node 1; they must agree.", ThreePeers, "--node-id", "1", "--advertise", "https://x:8082")]
    public void Contradictory_peers_are_refused(string expected, string peers, params string[] args) =>
        Bad(expected, ["--peers", peers, "--cluster-secret-file", _secret, .. args]);

    [Theory]
    [InlineData("https://127.0.0.1:9001", "https://127.0.0.1:9001")]
    [InlineData("https://localhost:9001", "https://localhost:9001")]
    [InlineData("https://10.1.2.3:9001", "https://[::]:9001")]
    [InlineData("https://a.example:9001", "https://[::]:9001")]
    public void Without_listen_a_node_listens_where_its_address_says(string own, string listens)
    {
        NodeOptions peer = Good(["--node-id", "1", "--peers", $"1={own},2=https://b:8082,3=https://c:8082", "--cluster-secret-file", _secret]);
        NodeOptions alone = Good(["--advertise", own]);

        Assert.Equal([new Uri(listens)], peer.Listen);
        Assert.Equal([new Uri(listens)], alone.Listen);
        Assert.Equal((new Uri(own), new Uri(own)), (peer.Advertise, alone.Advertise));
    }

    [Fact]
    public void An_unknown_option_hides_no_other_mistake()
    {
        NodeOptionsResult result = NodeOptionsParser.Parse(
            ["--bogus", "1", "--partitions", "0", "--peers", ThreePeers], new Dictionary<string, string>());

        Assert.Equal(
            ["Unknown option --bogus.", "--partitions: '0' is not a whole number from 1 to 256."], result.Errors);
    }

    [Fact]
    public void Peers_need_a_secret() =>
        Bad(
            "--peers with other nodes needs --cluster-secret-file: a file with a secret that all nodes share.",
            ["--peers", ThreePeers, "--node-id", "1"]);

    [Fact]
    public void Data_that_is_a_file_is_refused() =>
        Bad($"--data: {_secret} is a file, not a directory.", ["--data", _secret]);

    [Theory]
    [InlineData("""{ "nodeid": 1, "partitons": 3 }""", """FILE: unknown option "partitons"; did you mean partitions?""")]
    [InlineData("""{ "config": "x" }""", """FILE: unknown option "config".""")]
    [InlineData("""[1]""", "FILE: expected one JSON object with options, found Array.")]
    [InlineData("""{ "nodeId": true }""", """FILE: "nodeId" needs a value like number, found True.""")]
    [InlineData("""{ "nodeId": 1, "node-id": 1 }""", """FILE: "node-id" is given twice under different spellings; give it once.""")]
    [InlineData("""{ "nodeId": 0 }""", """FILE: "nodeId": '0' is not a whole number from 1 to 65535.""")]
    public void A_wrong_file_is_refused(string json, string expected)
    {
        string file = _directory.File("options.json", json);
        Bad(expected.Replace("FILE", file, StringComparison.Ordinal), ["--config", file]);
    }

    [Theory]
    [InlineData("{ nodeId: ")]
    [InlineData("")]
    [InlineData("""{ "nodeId": 1, "nodeId": 2 }""")]
    public void A_file_that_is_not_json_is_refused(string json)
    {
        string file = _directory.File("options.json", json);
        string error = Assert.Single(Parse(["--config", file]).Errors);
        Assert.StartsWith($"{file} is not valid JSON: ", error, StringComparison.Ordinal);
        Assert.DoesNotContain('\n', error);
    }

    [Fact]
    public void An_unknown_variable_is_refused_and_foreign_ones_are_left_alone()
    {
        Assert.Equal(
            "Unknown environment variable KAHUNA_NODEID; did you mean KAHUNA_NODE_ID?",
            Assert.Single(Parse([], ("KAHUNA_NODEID", "1")).Errors));
        Good([], ("KAHUNA_DEV_CERT_DIR", "/x"), ("KAHUNA_SERVICE_HOST", "10.0.0.1"), ("KAHUNA_PORT_8082_TCP", "tcp://10.0.0.1:8082"), ("KAHUNA_NODE_ID", ""), ("PATH", "/bin"));
    }

    [Fact]
    public void What_drops_data_is_said_on_the_command_line_only()
    {
        Assert.StartsWith(
            "Unknown environment variable KAHUNA_REBUILD",
            Assert.Single(Parse([], ("KAHUNA_REBUILD", "true")).Errors),
            StringComparison.Ordinal);
        string file = _directory.File("options.json", """{ "rebuild": true }""");
        Assert.StartsWith(
            $"{file}: unknown option \"rebuild\"",
            Assert.Single(Parse(["--config", file]).Errors),
            StringComparison.Ordinal);
    }

    [Fact]
    public void Under_a_small_log_limit_half_of_it_is_kept()
    {
        Assert.Equal(10_000_000, Good(["--log-limit", "20MB"]).LogKeepBytes);
        Assert.Equal(512_000_000, Good(["--log-limit", "520MB"]).LogKeepBytes);
    }

    [Fact]
    public void All_errors_are_told_at_once() =>
        Assert.Equal(2, Parse(["--node-id", "0", "--partitions", "x"]).Errors.Count);

    [Fact]
    public void Help_names_every_option_and_version_is_one_line()
    {
        string help = Parse(["--help"]).Text!;
        Assert.All(OptionSetting.All.Concat(OptionSetting.Switches), setting =>
            Assert.Contains(setting.Flag, help, StringComparison.Ordinal));
        Assert.Contains("KAHUNA_NODE_ID", help, StringComparison.Ordinal);
        Assert.Matches(@"^kahuna-server \d+\.\d+\.\d+\S*$", Parse(["--version"]).Text);
    }

    [Theory]
    [InlineData("1", 1)]
    [InlineData("10 KB", 10_000)]
    [InlineData("1.5kib", 1536)]
    [InlineData("16GB", 16_000_000_000)]
    [InlineData("2TiB", 2L << 40)]
    [InlineData("7B", 7)]
    public void Sizes(string text, long bytes)
    {
        Assert.True(ByteSize.TryParse(text, out long parsed));
        Assert.Equal(bytes, parsed);
    }

    [Theory]
    [InlineData("")]
    [InlineData("GB")]
    [InlineData("-1")]
    [InlineData("0")]
    [InlineData("1e3")]
    [InlineData("99999999999TB")]
    public void No_sizes(string text) => Assert.False(ByteSize.TryParse(text, out _));

    private static string Text(NodeOptions options) => System.Text.Json.JsonSerializer.Serialize(options);

    private static NodeOptionsResult Parse(string[] args, params (string Name, string Value)[] environment)
    {
        // Whether callers sign in is AccessOptionsTests' subject.
        Hashtable variables = new() { ["KAHUNA_AUTH"] = "none" };
        foreach ((string name, string value) in environment)
        {
            variables[name] = value;
        }

        return NodeOptionsParser.Parse(args, variables);
    }

    private static NodeOptions Good(string[] args, params (string Name, string Value)[] environment)
    {
        NodeOptionsResult result = Parse(args, environment);
        Assert.Empty(result.Errors);
        return result.Options!;
    }

    private static void Bad(string expected, string[] args)
    {
        NodeOptionsResult result = Parse(args);
        Assert.Equal(expected, Assert.Single(result.Errors));
        Assert.Null(result.Options);
    }
}
