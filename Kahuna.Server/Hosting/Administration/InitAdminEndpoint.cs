using System.Text.Json;
using Kahuna.Server.Access;
using Kahuna.Server.Api.Access;

namespace Kahuna.Server.Hosting.Administration;

/// <summary>
/// <c>POST /init-admin</c> with <c>{"user": …, "password": …}</c>: makes the first administrator. Open to callers that
/// prove that they know the cluster's secret, and only while there are no users. Stateless.
/// </summary>
internal static class InitAdminEndpoint
{
    /// <summary>Longest body: a name and a password, escaped.</summary>
    private const int BytesMax = 16 * 1024;

    private static readonly TimeSpan s_patience = TimeSpan.FromSeconds(20);

    /// <summary>Adds it. Who may call it is checked by the policy of its path.</summary>
    public static void Map(IEndpointRouteBuilder app, FirstAdministrator first) =>
        app.MapPost(AccessPolicies.InitAdminPath, http => HandleAsync(http, first));

    private static async Task HandleAsync(HttpContext http, FirstAdministrator first)
    {
        using CancellationTokenSource patience = CancellationTokenSource.CreateLinkedTokenSource(http.RequestAborted);
        patience.CancelAfter(s_patience);
        (int status, string sentence) = http.Features.Get<Caller>() is not { Method: CallerMethod.Node } caller
            ? (StatusCodes.Status403Forbidden, "This is only for callers that know the cluster's secret.")
            : await ReadAsync(http, patience.Token).ConfigureAwait(false) is not { } asked
            ? (StatusCodes.Status400BadRequest, "The request must be {\"user\": \"…\", \"password\": \"…\"}.")
            : FirstAdministrator.Objection(asked.User, asked.Password) is { } objection
            ? (StatusCodes.Status400BadRequest, objection)
            : await MakeAsync(first, caller, asked, patience.Token).ConfigureAwait(false);
        http.Response.StatusCode = status;
        http.Response.ContentType = "text/plain; charset=utf-8";
        await http.Response.WriteAsync(sentence + "\n", http.RequestAborted).ConfigureAwait(false);
    }

    private static async Task<(int Status, string Sentence)> MakeAsync(
        FirstAdministrator first, Caller caller, Asked asked, CancellationToken ct)
    {
        try
        {
            return await first.MakeAsync(caller, asked.User, asked.Password, ct).ConfigureAwait(false) switch
            {
                FirstAdministrator.Result.Made => (StatusCodes.Status200OK, "The first administrator is made."),
                FirstAdministrator.Result.HasUsers => (
                    StatusCodes.Status409Conflict,
                    "The cluster has users already; nothing was changed. Ask one of its administrators."),
                FirstAdministrator.Result.Conflict => (
                    StatusCodes.Status409Conflict, "Other changes came first; nothing was changed. Try again."),
                _ => (
                    StatusCodes.Status503ServiceUnavailable,
                    "There was no answer in time; the administrator may have been made. Try to sign in, or try again."),
            };
        }
        catch (OperationCanceledException)
        {
            return (
                StatusCodes.Status503ServiceUnavailable,
                "There was no answer in time; the administrator may have been made. Try to sign in, or try again.");
        }
    }

    private static async Task<Asked?> ReadAsync(HttpContext http, CancellationToken ct)
    {
        if (http.Request.ContentLength is not (> 0 and <= BytesMax) || !http.Request.HasJsonContentType())
        {
            return null;
        }

        try
        {
            using JsonDocument document = await JsonDocument.ParseAsync(
                http.Request.Body, cancellationToken: ct).ConfigureAwait(false);
            JsonElement root = document.RootElement;
            return root.ValueKind == JsonValueKind.Object
                && root.TryGetProperty("user", out JsonElement user)
                && root.TryGetProperty("password", out JsonElement password)
                && user.ValueKind == JsonValueKind.String
                && password.ValueKind == JsonValueKind.String
                    ? new Asked(user.GetString()!, password.GetString()!)
                    : null;
        }
        catch (Exception error) when (error is JsonException or BadHttpRequestException or IOException)
        {
            return null;
        }
        catch (OperationCanceledException)
        {
            return null;
        }
    }

    /// <summary>What a request asks for.</summary>
    private sealed record Asked(string User, string Password);
}
