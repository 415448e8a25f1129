using System.CommandLine;
using Kahuna.Cli.Connecting;
using Kahuna.Cli.Errors;
using Kahuna.Cli.Results;
using Kahuna.Cli.Terminal;
using Kahuna.Client;

namespace Kahuna.Cli.Commands;

/// <summary>One call of a command: what was given, where its results go, and the cluster. Used by it.</summary>
/// <param name="parsed">The command line.</param>
/// <param name="options">The options of the connection.</param>
/// <param name="environment">Streams, variables and the person.</param>
/// <param name="clients">Opens the client.</param>
/// <param name="output">Standard output.</param>
/// <param name="stop">Cancelled by Ctrl+C.</param>
internal sealed class CommandCall(
    ParseResult parsed,
    ConnectionOptions options,
    CliEnvironment environment,
    ClientSource clients,
    Output output,
    CancellationToken stop)
{
    private ConnectionChoice? _choice;

    public ParseResult Parsed => parsed;

    public ConnectionOptions Options => options;

    public CliEnvironment Environment => environment;

    public Output Output => output;

    public CancellationToken Stop => stop;

    /// <summary>Which cluster, and as whom.</summary>
    public ConnectionChoice Connection => _choice ??= options.Read(parsed, environment);

    /// <summary>The value of an option; its default when it was not given.</summary>
    public T? Get<T>(Option<T> option) => parsed.GetValue(option);

    /// <summary>The value of an argument that has to be given.</summary>
    public T Get<T>(Argument<T> argument) => parsed.GetRequiredValue(argument);

    /// <summary>The client of the cluster.</summary>
    public ValueTask<KahunaClient> ConnectAsync() => clients.OpenAsync(Connection);

    /// <summary>The client of another choice, if nobody has to be asked for it; null: somebody has.</summary>
    public ValueTask<KahunaClient?> TryOpenAsync(ConnectionChoice choice) => clients.TryOpenAsync(choice);

    /// <summary>The options that the client was made with.</summary>
    public async ValueTask<KahunaClientOptions> ClientOptionsAsync()
    {
        await ConnectAsync().ConfigureAwait(false);
        return clients.Options!;
    }

    /// <summary>Tells the person something that is no result.</summary>
    public void Note(string sentence) => environment.Streams.Error.WriteLine($"kahuna: {ShownText.Sentence(sentence)}");

    /// <summary>Says what is not there, or which condition did not hold; returns the exit code for it.</summary>
    public int NotThere(string sentence)
    {
        Note(sentence);
        return ExitCode.NotThere;
    }
}
