using System.Text;
using System.Text.Json;
using Kahuna.Cli;
using Kahuna.Cli.Terminal;

namespace Kahuna.Tests.Cli;

/// <summary>
/// The tool in this process: variables, a person to ask, and whether it writes to a terminal. Used by one test.
/// </summary>
internal sealed class CliTool
{
    /// <summary>The environment variables.</summary>
    public Dictionary<string, string> Variables { get; } = [];

    /// <summary>What the person enters, in order; empty: there is nobody.</summary>
    public Queue<string> Typed { get; } = [];

    /// <summary>Standard output is a terminal.</summary>
    public bool IsTerminal { get; init; }

    /// <summary>Where a person types lines; null: there is no terminal.</summary>
    public ITerminal? Terminal { get; init; }

    /// <summary>What Ctrl+C ends.</summary>
    public Interrupts Interrupts { get; } = new();

    /// <summary>Runs one command line to its end.</summary>
    public Task<CliResult> RunAsync(params string[] words) => RunAsync(words, "", default);

    /// <summary>Runs one command line with standard input.</summary>
    public async Task<CliResult> RunAsync(string[] words, string input, CancellationToken stop)
    {
        using MemoryStream output = new();
        int exitCode;
        StringWriter error;
        (exitCode, error) = await RunAsync(words, Encoding.UTF8.GetBytes(input), output, stop);
        return new CliResult(exitCode, output.ToArray(), error.ToString());
    }

    /// <summary>Runs one command line that writes into a stream of the caller.</summary>
    public async Task<(int ExitCode, StringWriter Error)> RunAsync(
        string[] words, byte[] input, Stream output, CancellationToken stop)
    {
        StringWriter error = new();
        await using CliApp app = new(Around(input, output, error));

        // Where the machine stands still, a call takes longer; a command that names a limit keeps its own.
        bool hasLimit = words.Contains("--timeout") || words.Contains("--help");
        string[] all = hasLimit ? words : ["--timeout", "4min", .. words];
        return (await app.RunAsync(all, stop).WaitAsync(LastNet.Span), error);
    }

    /// <summary>What a command has around it.</summary>
    public CliEnvironment Around(byte[] input, Stream output, TextWriter error) => new(
        new CliStreams(new MemoryStream(input), output, error) { IsOutputTerminal = IsTerminal },
        Variables.GetValueOrDefault,
        new Person(Typed))
    {
        Terminal = Terminal,
        Interrupts = Interrupts,
    };

    /// <summary>Only its owner can read a file; where a system has no such modes, nothing is asked.</summary>
    public static bool IsForItsOwner(string path) =>
        OperatingSystem.IsWindows()
            || File.GetUnixFileMode(path) == (UnixFileMode.UserRead | UnixFileMode.UserWrite);

    private sealed class Person(Queue<string> typed) : IPrompt
    {
        public bool IsThere => typed.Count > 0;

        public string? ReadSecret(string question) => typed.Dequeue();
    }
}

/// <summary>How a command line ended. Immutable.</summary>
/// <param name="ExitCode">The exit code.</param>
/// <param name="Bytes">Standard output.</param>
/// <param name="Error">Standard error.</param>
internal sealed record CliResult(int ExitCode, byte[] Bytes, string Error)
{
    public string Output => Encoding.UTF8.GetString(Bytes);

    /// <summary>The JSON document on standard output.</summary>
    public JsonElement Json
    {
        get
        {
            using JsonDocument document = JsonDocument.Parse(Bytes);
            return document.RootElement.Clone();
        }
    }

    /// <summary>The command has done what it was asked to.</summary>
    public CliResult Done() => Ended(Kahuna.Cli.Errors.ExitCode.Done);

    /// <summary>The command has ended so, and told the reason in one line.</summary>
    public CliResult Ended(int exitCode)
    {
        Assert.True(exitCode == ExitCode, $"exit code {ExitCode}: {Error}{Output}");
        Assert.True(Error.Count(static letter => letter == '\n') <= 1, Error);
        return this;
    }

    /// <summary>The line of the failure has a text.</summary>
    public void Tells(string text) => Assert.Contains(text, Error, StringComparison.Ordinal);

    /// <summary>Standard output has a text.</summary>
    public void Shows(string text) => Assert.Contains(text, Output, StringComparison.Ordinal);
}
