using System.Collections;
using System.CommandLine;
using System.Diagnostics;
using System.Globalization;
using System.Net;
using Kahuna.Client.Connection;
using Kahuna.Server.Hosting.Options;

namespace Kahuna.Server.Hosting.Administration;

/// <summary>
/// <c>kahuna-server health</c>: asks a node whether it is ready, for containers without a shell and for scripts.
/// Nothing secret is sent, so the node's certificate is not checked. Stateless.
/// </summary>
internal static class HealthCommand
{
    /// <summary>The verb.</summary>
    public const string Name = "health";

    /// <summary>A whole day, which no restart takes.</summary>
    private const int WaitSecondsMax = 86_400;

    /// <summary>Of one question; a stopped process accepts connections and does not answer.</summary>
    private static readonly TimeSpan s_patience = TimeSpan.FromSeconds(3);

    private static readonly TimeSpan s_pause = TimeSpan.FromMilliseconds(200);

    private static readonly Option<string?> s_endpoint = new("--endpoint")
    {
        Description = "Address of the node. Default: the one that a node with these KAHUNA_ variables listens on.",
        HelpName = "url",
    };

    private static readonly Option<bool> s_alive = new("--alive")
    {
        Description = "Ask whether the process answers (/healthz) instead of whether the node is ready (/readyz).",
        Arity = ArgumentArity.Zero,
    };

    private static readonly Option<string?> s_wait = new("--wait")
    {
        Description = "Ask again for up to this many seconds. Default: 0, one question.",
        HelpName = "seconds",
    };

    /// <summary>Runs it. The exit code is 0 if the answer was yes; the reason of a no goes to standard error.</summary>
    public static async Task<int> RunAsync(string[] args, IDictionary environment)
    {
        RootCommand command = new("Asks a node whether it is ready. The exit code is 0 if it is, else 1.");
        foreach (Option option in (Option[])[s_endpoint, s_alive, s_wait])
        {
            command.Options.Add(option);
        }

        command.SetAction((parsed, ct) => AskAsync(parsed, environment, ct));
        return await command.Parse(args, new ParserConfiguration { ResponseFileTokenReplacer = null })
            .InvokeAsync().ConfigureAwait(false);
    }

    private static async Task<int> AskAsync(ParseResult parsed, IDictionary environment, CancellationToken ct)
    {
        int seconds = 0;
        if (parsed.GetValue(s_wait) is { } wait
            && (!int.TryParse(wait, NumberStyles.None, CultureInfo.InvariantCulture, out seconds)
                || seconds > WaitSecondsMax))
        {
            return Fail($"--wait is not a number of seconds from 0 to {WaitSecondsMax}.");
        }

        Uri? endpoint;
        if (parsed.GetValue(s_endpoint) is not { } text)
        {
            NodeOptionsResult node = NodeOptionsParser.Parse([], environment);
            if (node.Options is null)
            {
                return Fail(node.Errors[0]);
            }

            endpoint = OwnEndPoint(node.Options);
        }
        else if (!Uri.TryCreate(text, UriKind.Absolute, out endpoint) || endpoint.Scheme != Uri.UriSchemeHttps)
        {
            return Fail("--endpoint is not an https address; write it as https://host:8082.");
        }

        return await AskUntilAsync(
            new Uri(endpoint, parsed.GetValue(s_alive) ? "/healthz" : "/readyz"), TimeSpan.FromSeconds(seconds), ct)
            .ConfigureAwait(false);
    }

    /// <summary>An address of this machine at which the node answers.</summary>
    private static Uri OwnEndPoint(NodeOptions options)
    {
        IPEndPoint first = ListenEndPoints.Of(options.Listen[0]).First();
        IPAddress address = first.Address.Equals(IPAddress.Any) || first.Address.Equals(IPAddress.IPv6Any)
            ? IPAddress.Loopback
            : first.Address;
        return new Uri($"https://{new IPEndPoint(address, first.Port)}");
    }

    private static async Task<int> AskUntilAsync(Uri address, TimeSpan wait, CancellationToken ct)
    {
        using SocketsHttpHandler handler = new()
        {
            AllowAutoRedirect = false,
            UseProxy = false,
            UseCookies = false,
            SslOptions = ServerTrust.For(address, trustedCaFile: null, insecure: true),
        };
        using HttpClient client = new(handler) { Timeout = s_patience, MaxResponseContentBufferSize = 64 * 1024 };
        long began = Stopwatch.GetTimestamp();
        while (true)
        {
            (bool isYes, string sentence) = await AskOnceAsync(client, address, ct).ConfigureAwait(false);
            if (isYes)
            {
                Console.WriteLine(sentence);
                return 0;
            }

            if (Stopwatch.GetElapsedTime(began) >= wait)
            {
                return Fail(sentence);
            }

            await Task.Delay(s_pause, ct).ConfigureAwait(false);
        }
    }

    private static async Task<(bool IsYes, string Sentence)> AskOnceAsync(
        HttpClient client, Uri address, CancellationToken ct)
    {
        try
        {
            using HttpResponseMessage response = await client.GetAsync(address, ct).ConfigureAwait(false);
            string text = OneLine.Of((await response.Content.ReadAsStringAsync(ct).ConfigureAwait(false)).Trim());
            return (
                response.StatusCode == HttpStatusCode.OK,
                text.Length > 0 ? text : $"{address} answered {(int)response.StatusCode}.");
        }
        catch (HttpRequestException error)
        {
            return (false, $"{address} does not answer: {(error.InnerException ?? error).Message}");
        }
        catch (OperationCanceledException) when (!ct.IsCancellationRequested)
        {
            return (false, $"{address} did not answer within {s_patience.TotalSeconds} s.");
        }
    }

    private static int Fail(string reason)
    {
        Console.Error.WriteLine($"kahuna-server {Name}: {OneLine.Of(reason)}");
        return 1;
    }
}
