using System.CommandLine;
using System.Text.Json;
using Kahuna.Cli.Commands.Inputs;
using Kahuna.Cli.Connecting;
using Kahuna.Cli.Errors;
using Kahuna.Cli.Terminal;
using Kahuna.Client;

namespace Kahuna.Cli.Completion;

/// <summary>
/// Names of keys for completion by a process of its own. A person waits for it: it makes one HTTP request instead of
/// opening a client, names that do not come in time do not come, and no failure is shown. Any thread.
/// </summary>
/// <param name="options">Which cluster.</param>
/// <param name="environment">The variables; nobody is asked for a password.</param>
internal sealed class KeyNames(ConnectionOptions options, CliEnvironment environment) : IKeyNames
{
    /// <summary>As many as a person reads.</summary>
    public const int Most = 50;

    /// <summary>
    /// The next node is asked when the one before has been silent for so long: healthy nodes answer sooner.
    /// </summary>
    private static readonly TimeSpan s_next = TimeSpan.FromMilliseconds(80);

    /// <summary>How long the names may take, connection included.</summary>
    public required TimeSpan Patience { get; init; }

    /// <inheritdoc/>
    public async Task<IReadOnlyList<string>> FindAsync(ParseResult parsed, string word)
    {
        if (Patience <= TimeSpan.Zero)
        {
            return [];
        }

        using CancellationTokenSource patience = new(Patience);
        try
        {
            ConnectionChoice choice = options.Read(parsed, environment) with { Timeout = Patience };
            KahunaClientOptions client = choice.ToOptions(environment with { Prompt = new Nobody() });
            using NodeHttp http = new(client);
            string level = LevelOption.In(parsed) == Durability.Ephemeral ? "EPHEMERAL" : "PERSISTENT";
            string path = $"/v1/scan?durability=DURABILITY_{level}&keysOnly=true&limit={Most}"
                + $"&prefix={Uri.EscapeDataString(word)}";
            return await FirstAsync(http, client.Endpoints, path, patience.Token).ConfigureAwait(false);
        }
        catch (Exception failure) when (
            failure is OperationCanceledException or CliException or ArgumentException or IOException)
        {
            return [];
        }
    }

    /// <summary>The first answer of a node, which are asked one after the other.</summary>
    private static async Task<IReadOnlyList<string>> FirstAsync(
        NodeHttp http, IEnumerable<Uri> endpoints, string path, CancellationToken ct)
    {
        List<Task<IReadOnlyList<string>?>> asked = [];
        foreach (Uri endpoint in endpoints)
        {
            http.Open(endpoint);
            asked.Add(AskAsync(http, endpoint, path, ct));
            await Task.WhenAny(asked[^1], Task.Delay(s_next, ct)).ConfigureAwait(false);
            if (asked[^1].IsCompletedSuccessfully && await asked[^1].ConfigureAwait(false) is { } names)
            {
                return names;
            }
        }

        while (asked.Count > 0)
        {
            Task<IReadOnlyList<string>?> first = await Task.WhenAny(asked).ConfigureAwait(false);
            asked.Remove(first);
            if (await first.ConfigureAwait(false) is { } late)
            {
                return late;
            }
        }

        return [];
    }

    /// <summary>The names that a node has; null: it did not answer with names.</summary>
    private static async Task<IReadOnlyList<string>?> AskAsync(
        NodeHttp http, Uri endpoint, string path, CancellationToken ct)
    {
        try
        {
            using HttpResponseMessage answer = await http.GetAsync(endpoint, path, ct).ConfigureAwait(false);
            if (!answer.IsSuccessStatusCode)
            {
                return null;
            }

            using JsonDocument document = JsonDocument.Parse(
                await answer.Content.ReadAsByteArrayAsync(ct).ConfigureAwait(false));
            return
            [
                .. document.RootElement.GetProperty("entries").EnumerateArray()
                    .Select(static entry => entry.GetProperty("key").GetString()!),
            ];
        }
        catch (Exception failure) when (
            failure is HttpRequestException or IOException or JsonException or OperationCanceledException
                or KeyNotFoundException or InvalidOperationException)
        {
            return null;
        }
    }

    private sealed class Nobody : IPrompt
    {
        public bool IsThere => false;

        public string? ReadSecret(string question) => null;
    }
}
