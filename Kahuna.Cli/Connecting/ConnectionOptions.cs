using System.CommandLine;
using Kahuna.Cli.Errors;
using Kahuna.Cli.Terminal;

namespace Kahuna.Cli.Connecting;

/// <summary>
/// The options of every command that say which cluster, and as whom. An option overrides the environment, which
/// overrides the context. Built once per tree of commands.
/// <para>
/// Credentials go only where they were meant to go: when <c>-c</c> names a cluster, the context in use gives neither
/// credentials nor authorities; a context that <c>--context</c> names does.
/// </para>
/// </summary>
internal sealed class ConnectionOptions
{
    private static readonly TimeSpan s_timeoutMin = TimeSpan.FromMilliseconds(1);
    private static readonly TimeSpan s_timeoutMax = TimeSpan.FromMilliseconds(Kahuna.Wire.Limits.CommandWaitMsMax);

    public Option<string> Endpoints { get; } = new("--connect", "-c")
    {
        Description = $"Nodes of the cluster, with commas between them [default: {ConnectionChoice.DefaultEndpoints}]",
        HelpName = "urls",
    };

    public Option<string> Context { get; } = Text("--context", "name", "Saved cluster to use; see 'kahuna context'");

    public Option<string> User { get; } = Text("--user", "name", "User to sign in as");

    public Option<string> PasswordFile { get; } = Text(
        "--password-file", "file", "File with the password of --user; without it the password is asked for");

    public Option<string> TokenFile { get; } = Text("--token-file", "file", "File with a token to sign in with");

    public Option<string> ClientCertificate { get; } = Text(
        "--client-certificate", "file", "Certificate to sign in with, in PEM, its key in the same file or its own");

    public Option<string> ClientCertificateKey { get; } = Text(
        "--client-certificate-key", "file", "Key of --client-certificate, in PEM");

    public Option<string> TrustedCa { get; } = Text(
        "--trusted-ca", "file", "Authorities that sign the certificates of the nodes, in PEM");

    public Option<bool> Insecure { get; } = new("--insecure")
    {
        Description = "Accept any certificate of a node; anybody between here and there can then read and change all",
        Recursive = true,
    };

    public Option<string> Timeout { get; } = Text("--timeout", "time", "Limit of one operation [default: 10s]");

    /// <summary>All of them, in the order of the help.</summary>
    public IEnumerable<Option> All =>
    [
        Endpoints, Context, User, PasswordFile, TokenFile, ClientCertificate, ClientCertificateKey, TrustedCa, Insecure,
        Timeout,
    ];

    public ConnectionOptions() => Endpoints.Recursive = true;

    /// <summary>What the options, the environment and the contexts say.</summary>
    /// <exception cref="CliException">They cannot be used.</exception>
    public ConnectionChoice Read(ParseResult parsed, CliEnvironment environment)
    {
        string? endpoints = parsed.GetValue(Endpoints);
        NamedContext context = ContextFor(parsed, environment, endpoints is not null);
        Access given = OptionsOf(parsed);
        bool isInsecure = parsed.GetValue(Insecure);
        Access fromVariables = new()
        {
            User = environment.Variable("KAHUNA_USER"),
            PasswordFile = environment.Variable("KAHUNA_PASSWORD_FILE"),
            TokenFile = environment.Variable("KAHUNA_TOKEN_FILE"),
        };
        return new ConnectionChoice
        {
            Endpoints = endpoints ?? environment.Variable("KAHUNA_ENDPOINTS") ?? context.Endpoints
                ?? ConnectionChoice.DefaultEndpoints,
            Access = !given.IsNone ? given : !fromVariables.IsNone ? fromVariables : context.Access,
            TrustedCa = parsed.GetValue(TrustedCa)
                ?? (isInsecure ? null : environment.Variable("KAHUNA_TRUSTED_CA") ?? context.TrustedCa),
            IsInsecure = isInsecure,
            Timeout = ReadTimeout(parsed.GetValue(Timeout)),
        };
    }

    /// <summary>How the options alone sign in.</summary>
    public Access OptionsOf(ParseResult parsed) => new()
    {
        User = parsed.GetValue(User),
        PasswordFile = parsed.GetValue(PasswordFile),
        TokenFile = parsed.GetValue(TokenFile),
        ClientCertificate = parsed.GetValue(ClientCertificate),
        ClientCertificateKey = parsed.GetValue(ClientCertificateKey),
    };

    /// <summary>What a person calls the cluster: the context's name, or its first node.</summary>
    /// <exception cref="CliException">The options cannot be used.</exception>
    public string NameOf(ParseResult parsed, CliEnvironment environment)
    {
        string? endpoints = parsed.GetValue(Endpoints);
        string? context = parsed.GetValue(Context);
        if (endpoints is null && context is null)
        {
            context = environment.Variable("KAHUNA_CONTEXT");
            endpoints = context is null ? environment.Variable("KAHUNA_ENDPOINTS") : null;
        }

        context ??= endpoints is null ? new ContextFile(environment).Read().Current : null;
        string first = (endpoints ?? ConnectionChoice.DefaultEndpoints).Split(',')[0];
        return context ?? first.Replace("https://", "", StringComparison.Ordinal);
    }

    private NamedContext ContextFor(ParseResult parsed, CliEnvironment environment, bool hasEndpoints)
    {
        string? asked = parsed.GetValue(Context);
        if (asked is null && hasEndpoints)
        {
            return new NamedContext();
        }

        asked ??= environment.Variable("KAHUNA_CONTEXT");
        if (asked is null && environment.Variable("KAHUNA_ENDPOINTS") is not null)
        {
            return new NamedContext();
        }

        ContextBook book = new ContextFile(environment).Read();
        asked ??= book.Current;
        return asked is null ? new NamedContext()
            : book.Contexts.TryGetValue(asked, out NamedContext? found) ? found
            : throw new CliException(
                $"There is no context '{asked}'; 'kahuna context list' lists the contexts.");
    }

    private static TimeSpan ReadTimeout(string? text) =>
        text is null ? TimeSpan.FromSeconds(10)
            : SpanText.TryParse(text, out TimeSpan timeout) && timeout >= s_timeoutMin && timeout <= s_timeoutMax
                ? timeout
                : throw new CliException($"--timeout: '{text}' is not {SpanText.Form}, from 1ms to 5m.");

    private static Option<string> Text(string name, string valueName, string description) => new(name)
    {
        Description = description,
        HelpName = valueName,
        Recursive = true,
    };
}
