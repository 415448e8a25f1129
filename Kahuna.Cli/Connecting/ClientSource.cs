using Kahuna.Cli.Terminal;
using Kahuna.Client;

namespace Kahuna.Cli.Connecting;

/// <summary>
/// Opens the client of a command, and keeps it for the next command of a session that asks for the same cluster. Used
/// by one command at a time; owned by the session.
/// </summary>
/// <param name="environment">Who is asked for a password.</param>
internal sealed class ClientSource(CliEnvironment environment) : IAsyncDisposable
{
    private (ConnectionChoice Choice, KahunaClient Client)? _open;

    /// <summary>The options of the open client; null: none was opened.</summary>
    public KahunaClientOptions? Options { get; private set; }

    /// <summary>The open client has credentials.</summary>
    public bool IsSignedIn => Options?.Credentials is not null;

    /// <summary>A client for a cluster; the source disposes it.</summary>
    public async ValueTask<KahunaClient> OpenAsync(ConnectionChoice choice)
    {
        if (_open is { } open)
        {
            if (open.Choice == choice)
            {
                return open.Client;
            }

            _open = null;
            await open.Client.DisposeAsync().ConfigureAwait(false);
        }

        Options = choice.ToOptions(environment);
        KahunaClient client = new(Options);
        _open = (choice, client);
        return client;
    }

    /// <summary>The client for a cluster, if nobody has to be asked for a password; null: somebody has.</summary>
    public async ValueTask<KahunaClient?> TryOpenAsync(ConnectionChoice choice) =>
        _open?.Choice == choice || !choice.Access.IsAsked
            ? await OpenAsync(choice).ConfigureAwait(false)
            : null;

    /// <inheritdoc/>
    public async ValueTask DisposeAsync()
    {
        if (_open is { } open)
        {
            _open = null;
            await open.Client.DisposeAsync().ConfigureAwait(false);
        }
    }
}
