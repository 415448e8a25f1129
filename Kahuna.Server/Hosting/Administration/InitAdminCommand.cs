using System.CommandLine;
using Kahuna.Client.Connection;
using Kahuna.Server.Api.Access;
using Kahuna.Server.Cluster;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Hosting.Administration;

/// <summary>
/// <c>kahuna-server init-admin</c>: asks a node to make the first administrator, and proves with the cluster's secret
/// that it may. Stateless.
/// </summary>
internal static class InitAdminCommand
{
    /// <summary>The verb.</summary>
    public const string Name = "init-admin";

    private static readonly TimeSpan s_patience = TimeSpan.FromSeconds(30);

    private static readonly Option<string> s_endpoint = Required(
        "--endpoint", "url", "Address of any node of the cluster, as https://host:8082.");

    private static readonly Option<string> s_user = Required("--user", "name", "Name of the administrator.");

    private static readonly Option<string> s_password = Required(
        "--password-file",
        "file",
        "File with the password, which only its owner may be able to read. -: standard input.");

    private static readonly Option<string> s_secret = Required(
        "--cluster-secret-file", "file", "File with the cluster's secret, as for the nodes.");

    private static readonly Option<string?> s_trusted = new("--trusted-ca")
    {
        Description = "PEM file with the authorities trusted for nodes. Default: the system's; on a loopback address "
            + "also the development authority.",
        HelpName = "file",
    };

    /// <summary>Runs it. The exit code is 0 when the administrator was made; reasons go to standard error.</summary>
    public static async Task<int> RunAsync(string[] args)
    {
        RootCommand command = new("Makes the first administrator of a cluster that has no users.");
        foreach (Option option in (Option[])[s_endpoint, s_user, s_password, s_secret, s_trusted])
        {
            command.Options.Add(option);
        }

        command.SetAction((parsed, ct) => AskAsync(parsed, ct));
        return await command.Parse(args, new ParserConfiguration { ResponseFileTokenReplacer = null })
            .InvokeAsync().ConfigureAwait(false);
    }

    private static async Task<int> AskAsync(ParseResult parsed, CancellationToken ct)
    {
        try
        {
            string user = parsed.GetRequiredValue(s_user);
            string password = BootstrapFile.ReadPassword(
                parsed.GetRequiredValue(s_password), Console.OpenStandardInput);
            if (FirstAdministrator.Objection(user, password) is { } objection)
            {
                return Fail(objection);
            }

            byte[][] secrets = ClusterSecret.Read(parsed.GetRequiredValue(s_secret));
            if (!Uri.TryCreate(parsed.GetRequiredValue(s_endpoint), UriKind.Absolute, out Uri? endpoint)
                || endpoint.Scheme != Uri.UriSchemeHttps)
            {
                return Fail("--endpoint is not an https address; write it as https://host:8082.");
            }

            (bool isMade, string sentence) = await PostAsync(
                endpoint, parsed.GetValue(s_trusted), new ClusterSecrets(secrets), new { user, password }, ct)
                .ConfigureAwait(false);
            if (!isMade)
            {
                return Fail(sentence);
            }

            Console.WriteLine(sentence);
            return 0;
        }
        catch (Exception error) when (error is InvalidDataException or IOException or HttpRequestException)
        {
            return Fail((error.InnerException ?? error).Message);
        }
        catch (OperationCanceledException)
        {
            return Fail("There was no answer in time; the administrator may have been made. Try to sign in.");
        }
    }

    private static async Task<(bool IsMade, string Sentence)> PostAsync(
        Uri endpoint, string? trustedCa, ClusterSecrets secrets, object body, CancellationToken ct)
    {
        using SocketsHttpHandler handler = new()
        {
            AllowAutoRedirect = false,
            UseProxy = false,
            UseCookies = false,
            SslOptions = ServerTrust.For(endpoint, trustedCa, insecure: false),
        };
        using HttpClient client = new(handler) { Timeout = s_patience, MaxResponseContentBufferSize = 64 * 1024 };
        using HttpRequestMessage request = new(HttpMethod.Post, new Uri(endpoint, AccessPolicies.InitAdminPath));
        request.Headers.Add(NodeCredential.Header, new NodeCredential(secrets).Value);
        request.Content = JsonContent.Create(body);
        await request.Content.LoadIntoBufferAsync(ct).ConfigureAwait(false);
        using HttpResponseMessage response = await client.SendAsync(request, ct).ConfigureAwait(false);
        string sentence = (await response.Content.ReadAsStringAsync(ct).ConfigureAwait(false)).Trim();
        return (
            response.IsSuccessStatusCode,
            sentence.Length > 0 ? OneLine.Of(sentence) : $"The node answered {(int)response.StatusCode}.");
    }

    private static int Fail(string reason)
    {
        Console.Error.WriteLine($"kahuna-server {Name}: {OneLine.Of(reason)}");
        return 1;
    }

    private static Option<string> Required(string name, string value, string description) => new(name)
    {
        Description = description,
        HelpName = value,
        Required = true,
    };
}
