using System.Globalization;
using Kahuna.Benchmark.Targets;

namespace Kahuna.Benchmark.Options;

/// <summary>Where the load goes: endpoints, or a cluster inside of this process. Immutable.</summary>
internal sealed record ConnectionSource
{
    /// <summary>More nodes than a Raft group profits from; above it lies a typing mistake.</summary>
    public const int EmbeddedNodesMax = 9;

    private const string EmbeddedName = "embedded";

    private ConnectionSource(string text, int embeddedNodes, IReadOnlyList<Uri> endpoints)
    {
        Text = text;
        EmbeddedNodes = embeddedNodes;
        Endpoints = endpoints;
    }

    /// <summary>As given.</summary>
    public string Text { get; }

    /// <summary>Nodes to start inside of this process; 0 when endpoints are given.</summary>
    public int EmbeddedNodes { get; }

    public IReadOnlyList<Uri> Endpoints { get; }

    /// <summary>Whether all endpoints are on this machine.</summary>
    public bool IsLoopback =>
        EmbeddedNodes > 0 || Endpoints.All(endpoint => endpoint.Host is "localhost" or "127.0.0.1" or "[::1]");

    /// <summary>Reads what <c>-c</c> was given; the error is a sentence without the option's name.</summary>
    public static ConnectionSource? Parse(string text, TargetKind target, out string? error)
    {
        if (text == EmbeddedName || text.StartsWith(EmbeddedName + ":", StringComparison.Ordinal))
        {
            return ParseEmbedded(text, target, out error);
        }

        List<Uri> endpoints = [];
        foreach (string part in text.Split(','))
        {
            if (ParseEndpoint(part.Trim(), target, out error) is not { } endpoint)
            {
                return null;
            }

            endpoints.Add(endpoint);
        }

        error = null;
        return new ConnectionSource(text, 0, endpoints);
    }

    private static ConnectionSource? ParseEmbedded(string text, TargetKind target, out string? error)
    {
        int nodes = 1;
        bool isValid = text == EmbeddedName
            || (
                int.TryParse(
                    text.AsSpan(EmbeddedName.Length + 1), NumberStyles.None, CultureInfo.InvariantCulture, out nodes)
                && nodes is >= 1 and <= EmbeddedNodesMax);
        if (!isValid)
        {
            error = $"'{text}' is not 'embedded' or 'embedded:N' with N from 1 to {EmbeddedNodesMax}.";
            return null;
        }

        if (target != TargetKind.Kahuna)
        {
            error = $"'{text}' starts Kahuna nodes and cannot be used with --target {TargetNames.Of(target)}; "
                + "give its endpoints.";
            return null;
        }

        error = null;
        return new ConnectionSource(text, nodes, []);
    }

    private static Uri? ParseEndpoint(string text, TargetKind target, out string? error)
    {
        (string scheme, int defaultPort) = target switch
        {
            TargetKind.Etcd => ("http", 2379),
            TargetKind.Redis => ("redis", 6379),
            _ => ("https", 8082),
        };
        string absolute = text.Contains("://", StringComparison.Ordinal) ? text : $"{scheme}://{text}";
        bool isUsable = Uri.TryCreate(absolute, UriKind.Absolute, out Uri? uri)
            && uri.Scheme == scheme
            && uri.Host.Length > 0
            && uri.UserInfo.Length == 0
            && uri.PathAndQuery is "/" or "";
        if (!isUsable)
        {
            error = $"'{text}' is not an endpoint such as {scheme}://127.0.0.1:{defaultPort}.";
            return null;
        }

        error = null;

        // A scheme that .NET does not know has no default port, and https has one that nobody means here.
        bool hasPort = absolute.AsSpan(absolute.IndexOf("://", StringComparison.Ordinal) + 3).TrimEnd('/').EndsWith($":{uri!.Port}", StringComparison.Ordinal);
        return hasPort ? uri : new UriBuilder(uri) { Port = defaultPort }.Uri;
    }
}
