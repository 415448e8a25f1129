using System.Text;
using System.Text.Json;
using Kahuna.Server.Access;
using Kahuna.Server.Hosting;
using Kahuna.Tests.Client;
using Microsoft.Extensions.Logging.Abstractions;

namespace Kahuna.Tests.Hosting;

/// <summary>What the audit log says, and what it costs when it cannot.</summary>
public sealed class AuditLogTests : IDisposable
{
    private readonly TemporaryDirectory _directory = new();
    private readonly SteppedTime _time = new();

    private string FilePath => Path.Combine(_directory.Path, "audit.log");

    public void Dispose() => _directory.Dispose();

    [Fact]
    public void A_line_says_who_what_and_how_it_ended()
    {
        JsonElement line = Assert.Single(Written(log => log.Write(
            Caller.Node, "CreateUser", "ann", AuditResults.Done)));

        Assert.Equal("2030-01-01T00:00:00Z", line.GetProperty("time").GetString());
        Assert.Equal("a node", line.GetProperty("user").GetString());
        Assert.Equal("node", line.GetProperty("method").GetString());
        Assert.Equal("CreateUser", line.GetProperty("action").GetString());
        Assert.Equal("ann", line.GetProperty("subject").GetString());
        Assert.Equal("done", line.GetProperty("result").GetString());
        Assert.False(line.TryGetProperty("dropped", out _));
    }

    [Theory]
    [InlineData("a\n{\"time\":\"2030-01-01T00:00:00Z\",\"user\":\"forged\"}")]
    [InlineData("a\r\nb")]
    [InlineData("\u0085\u2028\u2029")]
    [InlineData("\u001b[2J\u001b]0;title\u0007")]
    [InlineData("\0\"\\</script>")]
    [InlineData("\ud800 half a pair")]
    [InlineData("\u202e right to left")]
    public void No_name_writes_a_line_of_its_own(string name)
    {
        JsonElement line = Assert.Single(Written(
            log => log.Write(Caller.Node, "SetKeyValue", name, AuditResults.Done)));

        Assert.Equal("a node", line.GetProperty("user").GetString());
        Assert.Equal(name.Replace('\ud800', '\ufffd'), line.GetProperty("subject").GetString());
        Assert.All(
            File.ReadAllBytes(FilePath),
            static part => Assert.True(part is (byte)'\n' or (>= (byte)' ' and <= (byte)'~')));
    }

    [Fact]
    public void In_the_log_of_the_node_it_is_one_line_too()
    {
        LineRecorder recorder = new();
        using (AuditLog log = new(null, recorder, _time))
        {
            log.Write(Caller.Node, "SetKeyValue", "a\nb\u2028c", AuditResults.Done);
        }

        Assert.Equal(
            "Audit: 'a node' (node, ): SetKeyValue 'a\\nb\\u2028c': done (0 dropped and 0 suppressed before this line)",
            Assert.Single(recorder.Lines));
    }

    [Theory]
    [InlineData("x': done (0 dropped and 0 suppressed before this line) Audit: 'root", "\\u0027")]
    [InlineData("\u001b[2J\u001b]0;title\u0007", "\\u001B[2J\\u001B]0;title\\u0007")]
    [InlineData("\u202e right to left", "\\u202E")]
    [InlineData("a\\nb", "a\\\\nb")]
    [InlineData("\ud800 half a pair\n", "\\uFFFD half a pair\\n")]
    public void In_the_log_of_the_node_a_name_does_not_leave_its_quotes(string name, string shown)
    {
        LineRecorder recorder = new();
        using (AuditLog log = new(null, recorder, _time))
        {
            log.Write(Caller.Node, "set", name, AuditResults.Done);
        }

        string line = Assert.Single(recorder.Lines);
        Assert.Contains(shown, line, StringComparison.Ordinal);
        Assert.Equal(4, line.Count(static character => character == '\''));
        Assert.DoesNotContain(line, char.IsControl);
    }

    [Fact]
    public void A_long_name_is_cut_between_characters()
    {
        string name = new string('a', 1023) + "\U0001F600\n" + new string('b', 100_000);
        JsonElement line = Assert.Single(Written(log => log.Write(Caller.Node, "set", name, AuditResults.Done)));
        Assert.Equal(new string('a', 1023) + "…", line.GetProperty("subject").GetString());
        LineRecorder recorder = new();
        using (AuditLog log = new(null, recorder, _time))
        {
            log.Write(Caller.Node, "set", "\n" + name[1..], AuditResults.Done);
        }

        Assert.InRange(Assert.Single(recorder.Lines).Length, 1024, 2048);
    }

    [Fact]
    public async Task Nothing_that_fails_ends_the_writer()
    {
        List<byte[]> written = [];
        bool fails = true;
        TaskCompletionSource tried = new(TaskCreationOptions.RunContinuationsAsynchronously);
        using (AuditLog log = new(
            line =>
            {
                if (Volatile.Read(ref fails))
                {
                    tried.TrySetResult();
                    throw new NotSupportedException("nobody expects this");
                }

                written.Add(line.ToArray());
            },
            NullLogger.Instance,
            _time))
        {
            log.Write(Caller.Node, "set", "a", AuditResults.Done);
            await tried.Task.WaitAsync(Wait.Longest);
            Volatile.Write(ref fails, false);
            log.Write(Caller.Node, "set", "b", AuditResults.Done);
        }

        Assert.Equal(1, Parse(Assert.Single(written)).GetProperty("dropped").GetInt64());
    }

    [Fact]
    public void A_flood_of_refusals_is_counted()
    {
        List<JsonElement> lines = Written(log =>
        {
            for (int i = 0; i < 1000; i++)
            {
                log.Write(Caller.Anybody, "request", $"key {i}", AuditResults.Refused("no"));
            }

            log.Write(Caller.Node, "CreateUser", "ann", AuditResults.Done);
        });

        Assert.Equal(AuditLog.RefusalsPerSecond + 1, lines.Count);
        Assert.Equal(
            1000 - AuditLog.RefusalsPerSecond,
            lines.Sum(static line => line.TryGetProperty("suppressed", out JsonElement count) ? count.GetInt64() : 0));
        Assert.Equal("CreateUser", lines[^1].GetProperty("action").GetString());
    }

    [Fact]
    public void Files_rotate_and_the_oldest_go()
    {
        using (AuditFile file = new(FilePath, fileBytes: 100, files: 3))
        {
            for (int i = 0; i < 50; i++)
            {
                file.Append(Encoding.ASCII.GetBytes($"line {i:d2} {new string('x', 20)}\n"));
            }
        }

        string[] files = [.. Directory.GetFiles(_directory.Path).Select(Path.GetFileName).Order()!];
        Assert.Equal(["audit.log", "audit.log.1", "audit.log.2"], files);
        Assert.EndsWith($"line 49 {new string('x', 20)}\n", File.ReadAllText(FilePath), StringComparison.Ordinal);
        Assert.All(
            Directory.GetFiles(_directory.Path), static path => Assert.InRange(new FileInfo(path).Length, 1, 130));
        if (!OperatingSystem.IsWindows())
        {
            Assert.Equal(
                UnixFileMode.None, File.GetUnixFileMode(FilePath) & (UnixFileMode.OtherRead | UnixFileMode.OtherWrite));
        }
    }

    [Fact]
    public void A_restart_goes_on_with_the_file()
    {
        Written(log => log.Write(Caller.Node, "first", "", AuditResults.Done));
        Assert.Equal(2, Written(log => log.Write(Caller.Node, "second", "", AuditResults.Done)).Count);
    }

    [Fact]
    public async Task A_full_disk_costs_lines_and_is_told()
    {
        List<byte[]> written = [];
        LineRecorder recorder = new();
        bool isFull = true;
        TaskCompletionSource tried = new(TaskCreationOptions.RunContinuationsAsynchronously);
        int failures = 0;
        using (AuditLog log = new(
            line =>
            {
                if (Volatile.Read(ref isFull))
                {
                    if (++failures == 3)
                    {
                        tried.SetResult();
                    }

                    throw new IOException("No space left on device");
                }

                written.Add(line.ToArray());
            },
            recorder,
            _time))
        {
            for (int i = 0; i < 3; i++)
            {
                log.Write(Caller.Node, "CreateUser", $"{i}", AuditResults.Done);
            }

            await tried.Task.WaitAsync(Wait.Longest);
            Volatile.Write(ref isFull, false);
            log.Write(Caller.Node, "CreateUser", "ann", AuditResults.Done);
        }

        JsonElement line = Parse(Assert.Single(written));
        Assert.Equal(3, line.GetProperty("dropped").GetInt64());
        Assert.Contains("No space left", Assert.Single(recorder.Lines), StringComparison.Ordinal);
    }

    [Fact]
    public async Task A_slow_disk_blocks_nobody()
    {
        using ManualResetEventSlim released = new();
        List<byte[]> written = [];
        using (AuditLog log = new(
            line =>
            {
                released.Wait();
                written.Add(line.ToArray());
            },
            NullLogger.Instance,
            _time))
        {
            await Task.Run(() =>
            {
                for (int i = 0; i < 100_000; i++)
                {
                    log.Write(Caller.Node, "CreateUser", $"{i}", AuditResults.Done);
                }
            }).WaitAsync(Wait.Longest);
            released.Set();
        }

        Assert.InRange(written.Count, 1, 10_000);
        Assert.Equal(
            100_000,
            written.Count + written.Select(Parse).Sum(static line =>
                line.TryGetProperty("dropped", out JsonElement count) ? count.GetInt64() : 0));
    }

    private List<JsonElement> Written(Action<AuditLog> write)
    {
        using (AuditFile file = new(FilePath, 1_000_000, 2))
        {
            using AuditLog log = new(file.Append, NullLogger.Instance, _time);
            write(log);
        }

        return [.. File.ReadAllLines(FilePath).Select(static line => Parse(Encoding.UTF8.GetBytes(line)))];
    }

    private static JsonElement Parse(byte[] line)
    {
        using JsonDocument document = JsonDocument.Parse(line);
        return document.RootElement.Clone();
    }
}
