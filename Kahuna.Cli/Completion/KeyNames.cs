using System.CommandLine;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Security.Cryptography;
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
            if (choice.TrustedCa is not null || choice.IsInsecure)
            {
                environment.LeaveOutMachineAuthorities();
            }

            KahunaClientOptions client = choice.ToOptions(environment with { Prompt = new Nobody() });
            string? authorization = client.Credentials is { } credentials
                ? await credentials.Source.ReadAsync(patience.Token).ConfigureAwait(false)
                : null;
            string level = LevelOption.In(parsed) == Durability.Ephemeral ? "EPHEMERAL" : "PERSISTENT";
            string path = $"/v1/scan?durability=DURABILITY_{level}&keysOnly=true&limit={Most}"
                + $"&prefix={Uri.EscapeDataString(word)}";
            return await FirstAsync(
                client.Endpoints, endpoint => Ask(endpoint, path, client, authorization, patience.Token),
                patience.Token).ConfigureAwait(false);
        }
        catch (Exception failure) when (
            failure is OperationCanceledException or CliException or ArgumentException or IOException)
        {
            return [];
        }
    }

    /// <summary>
    /// The first answer of a node, which are asked one after the other, each on a thread of its own.
    /// </summary>
    private static async Task<IReadOnlyList<string>> FirstAsync(
        IEnumerable<Uri> endpoints, Func<Uri, IReadOnlyList<string>?> ask, CancellationToken ct)
    {
        List<Task<IReadOnlyList<string>?>> asked = [];
        foreach (Uri endpoint in endpoints)
        {
            Task<IReadOnlyList<string>?> next = Task.Run(() => ask(endpoint), CancellationToken.None);
            asked.Add(next);
            await Task.WhenAny(next, Task.Delay(s_next, ct)).ConfigureAwait(false);
            if (next.IsCompletedSuccessfully && await next.ConfigureAwait(false) is { } names)
            {
                return names;
            }
        }

        while (asked.Count > 0)
        {
            // A name that is looked up cannot be left: the process ends without it.
            Task<IReadOnlyList<string>?> first = await Task.WhenAny(asked).WaitAsync(ct).ConfigureAwait(false);
            asked.Remove(first);
            if (await first.ConfigureAwait(false) is { } late)
            {
                return late;
            }
        }

        return [];
    }

    /// <summary>The names that a node has; null: it did not answer with names.</summary>
    private static List<string>? Ask(
        Uri endpoint, string path, KahunaClientOptions options, string? authorization, CancellationToken ct)
    {
        try
        {
            if (SingleRequest.Get(endpoint, path, options, authorization, ct) is not { } answer)
            {
                return null;
            }

            using JsonDocument document = JsonDocument.Parse(answer);
            List<string> names = [];
            foreach (JsonElement entry in document.RootElement.GetProperty("entries").EnumerateArray())
            {
                names.Add(entry.GetProperty("key").GetString()!);
            }

            return names;
        }
        catch (Exception failure) when (
            failure is IOException or SocketException or AuthenticationException or ObjectDisposedException
                or JsonException or KeyNotFoundException or InvalidOperationException or CryptographicException)
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
