using Kahuna.Server.Api.Access;

namespace Kahuna.Server.Hosting.Page;

/// <summary>
/// How the page and what it asks for are sent: its files, which hold no data and are open, and answers of JSON.
/// Stateless.
/// </summary>
internal static class PageEndpoints
{
    /// <summary>
    /// Nothing but the page's own files and calls: no script, style or image inside the document or of another origin,
    /// no form that leaves the page, and no page around this one.
    /// </summary>
    internal const string ContentSecurityPolicy =
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

    private static readonly string[] s_methods = [HttpMethods.Get, HttpMethods.Head];

    /// <summary>Adds the files of the page.</summary>
    /// <param name="app">The node's web server.</param>
    public static void MapFiles(IEndpointRouteBuilder app)
    {
        IReadOnlyDictionary<string, PageFile> files = PageFile.ReadAll();
        app.MapMethods(AccessPolicies.PagePath, s_methods, http => SendAsync(http, files[PageFile.Document]));
        app.MapMethods(
            AccessPolicies.PageFilePath,
            s_methods,
            http => SendAsync(http, files.GetValueOrDefault((string)http.Request.RouteValues["file"]!)));
    }

    /// <summary>Adds a path that answers with JSON.</summary>
    /// <param name="app">The node's web server.</param>
    /// <param name="path">The path.</param>
    /// <param name="answer">Makes the answer to a request.</param>
    public static void MapJson(IEndpointRouteBuilder app, string path, Func<HttpRequest, Task<byte[]>> answer) =>
        app.MapGet(path, async http =>
        {
            try
            {
                await SendJsonAsync(http, await answer(http.Request));
            }
            catch (FormatException error)
            {
                await RefuseAsync(http, StatusCodes.Status400BadRequest, error.Message);
            }
            catch (TimeoutException error)
            {
                await RefuseAsync(http, StatusCodes.Status503ServiceUnavailable, error.Message);
            }
        });

    private static Task RefuseAsync(HttpContext http, int status, string sentence)
    {
        http.Response.StatusCode = status;
        http.Response.Headers.CacheControl = "no-store";
        http.Response.Headers.XContentTypeOptions = "nosniff";
        return PatientAnswer.SendLineAsync(http, sentence);
    }

    private static Task SendJsonAsync(HttpContext http, byte[] answer)
    {
        http.Response.ContentType = "application/json";
        http.Response.Headers.CacheControl = "no-store";
        http.Response.Headers.XContentTypeOptions = "nosniff";
        return PatientAnswer.SendAsync(http, answer);
    }

    private static Task SendAsync(HttpContext http, PageFile? file)
    {
        HttpResponse response = http.Response;
        IHeaderDictionary headers = response.Headers;
        headers.ContentSecurityPolicy = ContentSecurityPolicy;
        headers.XContentTypeOptions = "nosniff";
        headers["Referrer-Policy"] = "no-referrer";
        headers["Cross-Origin-Resource-Policy"] = "same-origin";
        if (file is null)
        {
            response.StatusCode = StatusCodes.Status404NotFound;
            return Task.CompletedTask;
        }

        // A browser asks each time whether it has the present version, so that an upgraded node is seen at once.
        headers.CacheControl = "no-cache";
        headers.ETag = file.Tag;
        if (IsKnown(http.Request, file.Tag))
        {
            response.StatusCode = StatusCodes.Status304NotModified;
            return Task.CompletedTask;
        }

        response.ContentType = file.ContentType;
        response.ContentLength = file.Content.Length;
        return HttpMethods.IsHead(http.Request.Method)
            ? Task.CompletedTask
            : PatientAnswer.SendAsync(http, file.Content);
    }

    /// <summary>Whether the browser has this version (RFC 9110, 13.1.2).</summary>
    private static bool IsKnown(HttpRequest request, string tag) =>
        request.Headers.IfNoneMatch.Any(line => line?.Contains(tag, StringComparison.Ordinal) ?? false);
}
