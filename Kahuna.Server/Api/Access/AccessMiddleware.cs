using Grpc.Core;
using Kahuna.Server.Access;

namespace Kahuna.Server.Api.Access;

/// <summary>
/// The first middleware behind routing: finds who makes a request, refuses it if its way in is not open to the caller,
/// and else leaves the <see cref="Caller"/> among the features of the request. Owned by the node; any thread.
/// </summary>
/// <param name="authenticator">Finds the caller.</param>
/// <param name="audit">Gets what is refused.</param>
internal sealed class AccessMiddleware(Authenticator authenticator, IAuditLog audit)
{
    private static readonly SignInRefusal s_noPolicy = new(
        StatusCode.PermissionDenied, "This method or path is not open to anybody: it has no policy.");

    private static readonly SignInRefusal s_notAdmin = new(
        StatusCode.PermissionDenied, "This needs the permission 'admin', which the caller does not have.");

    private static readonly SignInRefusal s_notNode = new(
        StatusCode.PermissionDenied, "This is only for callers that know the cluster's secret.");

    private static readonly SignInRefusal s_stale = new(
        StatusCode.Unavailable,
        "This node does not know the present users and roles, because it does not hear from the leader; nothing was "
            + "done. Try again, or another node.")
    {
        RetryAfter = TimeSpan.FromSeconds(1),
    };

    private static readonly SignInRefusal s_foreign = new(
        StatusCode.PermissionDenied,
        "A browser sent this for a page of another site, with the client certificate of its user; nothing was done. "
            + "Such pages may not call a node.");

    /// <summary>The token that may read the metrics; null: there is none.</summary>
    public Func<string, bool>? IsMetricsToken { get; init; }

    /// <summary>Handles a request and passes it on to the next middleware.</summary>
    public Task HandleAsync(HttpContext http, RequestDelegate next)
    {
        Endpoint? endpoint = http.GetEndpoint();
        AccessPolicy? policy = endpoint is null ? AccessPolicy.SignedIn : AccessPolicies.Find(endpoint);
        if (policy == AccessPolicy.Open || (policy == AccessPolicy.Metrics && ShowsMetricsToken(http)))
        {
            return next(http);
        }

        ValueTask<SignIn> signIn = authenticator.SignInAsync(http);
        return signIn.IsCompletedSuccessfully
            ? ContinueAsync(http, next, policy, signIn.Result)
            : AwaitAsync(http, next, policy, signIn);
    }

    private async Task AwaitAsync(
        HttpContext http, RequestDelegate next, AccessPolicy? policy, ValueTask<SignIn> signIn) =>
        await ContinueAsync(http, next, policy, await signIn.ConfigureAwait(false)).ConfigureAwait(false);

    private Task ContinueAsync(HttpContext http, RequestDelegate next, AccessPolicy? policy, SignIn signIn)
    {
        SignInRefusal? refusal = signIn.Refusal ?? Objection(http, policy, signIn.Caller!);
        if (refusal?.Code == StatusCode.Unauthenticated && Authenticator.IsSomething(http) && !authenticator.IsFresh)
        {
            // A user or a password that this node does not know may have been made meanwhile, or before its start.
            refusal = s_stale;
        }

        if (refusal is null)
        {
            http.Features.Set(signIn.Caller!);
            return next(http);
        }

        if (refusal.Code != StatusCode.Unavailable)
        {
            audit.Write(
                signIn.Caller ?? authenticator.Nobody(http, refusal),
                signIn.Caller is null ? "sign in" : "request",
                http.Request.Path,
                AuditResults.Refused(refusal.Sentence));
        }

        return SignInRefusals.WriteAsync(http, refusal);
    }

    private bool ShowsMetricsToken(HttpContext http) =>
        IsMetricsToken is not null
            && AuthorizationHeader.Parse(http.Request.Headers.Authorization, out _) is { User: null } header
            && IsMetricsToken(header.Secret);

    /// <summary>
    /// A browser shows a client certificate whichever page makes it call the node. It says so of pages of other sites
    /// (Fetch Metadata, 2.3).
    /// </summary>
    private static bool IsForeign(HttpContext http, Caller caller) => caller.Method == CallerMethod.Certificate
        && http.Request.Headers["sec-fetch-site"].ToString() is ("cross-site" or "same-site");

    private SignInRefusal? Objection(HttpContext http, AccessPolicy? policy, Caller caller)
    {
        if (IsForeign(http, caller))
        {
            return s_foreign;
        }

        if (!authenticator.IsRequired)
        {
            return policy == AccessPolicy.Node && caller.Method != CallerMethod.Node ? s_notNode : null;
        }

        return caller.Method == CallerMethod.Node
            ? policy switch
            {
                AccessPolicy.SignedIn or AccessPolicy.Node or AccessPolicy.AdminOrNode => null,
                null => s_noPolicy,
                _ => s_notAdmin,
            }
            : !authenticator.IsFresh ? s_stale
            : policy switch
            {
                AccessPolicy.SignedIn => null,
                AccessPolicy.Admin or AccessPolicy.AdminOrNode or AccessPolicy.Metrics =>
                    caller.Rights.IsAdmin ? null : s_notAdmin,
                AccessPolicy.Node => s_notNode,
                _ => s_noPolicy,
            };
    }
}
