using System.CommandLine;
using Kahuna.Cli.Commands.Inputs;
using Kahuna.Cli.Connecting;
using Kahuna.Cli.Errors;
using Kahuna.Cli.Terminal;
using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Outcomes;

namespace Kahuna.Cli.Completion;

/// <summary>
/// Names of keys for completion, from the cluster. A person waits for them: what does not come soon does not come, and
/// no failure is shown. Any thread.
/// </summary>
/// <param name="options">Which cluster.</param>
/// <param name="environment">The variables; nobody is asked for a password.</param>
internal sealed class KeyNames(ConnectionOptions options, CliEnvironment environment)
{
    /// <summary>As many as a person reads.</summary>
    private const int Most = 50;

    private static readonly TimeSpan s_close = TimeSpan.FromMilliseconds(100);

    /// <summary>How long the names may take, connection included.</summary>
    public required TimeSpan Patience { get; init; }

    /// <summary>The keys that begin with a word; none when the cluster does not answer in time.</summary>
    public async Task<IReadOnlyList<string>> FindAsync(ParseResult parsed, string word)
    {
        using CancellationTokenSource patience = new(Patience);
        try
        {
            ConnectionChoice choice = options.Read(parsed, environment) with { Timeout = Patience };
            KahunaClient client = new(choice.ToOptions(environment with { Prompt = new Nobody() }));
            try
            {
                ScanOptions scan = new()
                {
                    KeysOnly = true,
                    Limit = Most,
                    PageSize = Most,
                    Durability = LevelOf(parsed),
                };
                List<string> names = [];
                await foreach (KeyValueEntry entry in client.KeyValues.ScanAsync(word, scan, patience.Token)
                    .ConfigureAwait(false))
                {
                    names.Add(entry.Key);
                }

                return names;
            }
            finally
            {
                await client.DisposeAsync().AsTask().WaitAsync(s_close, CancellationToken.None).ConfigureAwait(false);
            }
        }
        catch (Exception failure) when (
            failure is TimeoutException or OperationCanceledException or KahunaException or CliException
                or ArgumentException or IOException)
        {
            return [];
        }
    }

    private static Durability LevelOf(ParseResult parsed) =>
        parsed.CommandResult.Command.Options.OfType<LevelOption>().FirstOrDefault() is { } level
            && parsed.GetValue(level)
            ? Durability.Ephemeral
            : Durability.Persistent;

    private sealed class Nobody : IPrompt
    {
        public bool IsThere => false;

        public string? ReadSecret(string question) => null;
    }
}
