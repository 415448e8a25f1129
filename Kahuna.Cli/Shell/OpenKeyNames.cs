using System.CommandLine;
using Kahuna.Cli.Commands;
using Kahuna.Cli.Commands.Inputs;
using Kahuna.Cli.Completion;
using Kahuna.Cli.Connecting;
using Kahuna.Cli.Errors;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Outcomes;

namespace Kahuna.Cli.Shell;

/// <summary>
/// Names of keys over the connection of a shell. Names that do not come in time do not come; the connection goes on
/// and is there for the next word. Used by one shell.
/// </summary>
/// <param name="call">The call of the shell.</param>
/// <param name="options">The options of the connection in a line.</param>
internal sealed class OpenKeyNames(CommandCall call, ConnectionOptions options) : IKeyNames
{
    /// <summary>How long a person waits without noticing.</summary>
    public TimeSpan Patience { get; init; } = TimeSpan.FromMilliseconds(300);

    /// <inheritdoc/>
    public async Task<IReadOnlyList<string>> FindAsync(ParseResult parsed, string word)
    {
        using CancellationTokenSource patience = CancellationTokenSource.CreateLinkedTokenSource(call.Stop);
        patience.CancelAfter(Patience);
        try
        {
            ConnectionChoice choice = options.Read(parsed, call.Environment);
            if (await call.TryOpenAsync(choice).ConfigureAwait(false) is not { } client)
            {
                return [];
            }

            ScanOptions scan = new()
            {
                KeysOnly = true,
                Limit = KeyNames.Most,
                PageSize = KeyNames.Most,
                Durability = LevelOption.In(parsed),
            };
            List<string> names = [];
            await foreach (KeyValueEntry entry in client.KeyValues.ScanAsync(word, scan, patience.Token)
                .ConfigureAwait(false))
            {
                names.Add(entry.Key);
            }

            return names;
        }
        catch (Exception failure) when (
            failure is OperationCanceledException or KahunaException or CliException or ArgumentException
                or IOException)
        {
            return [];
        }
    }
}
