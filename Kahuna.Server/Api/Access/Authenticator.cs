using System.Net;
using System.Security.Cryptography.X509Certificates;
using Kahuna.Server.Access;
using Kahuna.Server.Cluster;
using Kahuna.Server.Primitives;
using Microsoft.Extensions.Primitives;

namespace Kahuna.Server.Api.Access;

/// <summary>
/// Says who makes a request: by a password, a token, a JSON Web Token, a client certificate, or the proof of a node.
/// Owned by the node; any thread.
/// </summary>
/// <param name="access">Users and tokens.</param>
/// <param name="credential">By which other nodes are recognized.</param>
/// <param name="passwords">Checks passwords.</param>
internal sealed class Authenticator(AccessState access, NodeCredential credential, PasswordSignIn passwords)
{
    private const string Nothing =
        "The request does not say who makes it. Sign in with the header 'authorization': 'Basic' with user and "
            + "password, or 'Bearer' with a token.";

    private const string Several =
        "The request says in several ways who makes it; use one of password, token and client certificate.";

    private const string OtherCertificate =
        "The client certificate is not one that this node accepts: an authority of --auth-client-ca must have issued "
            + "it, for clients, and it must be valid now.";

    private const string NoNode =
        "The proof of a node is not one of this cluster, or it comes without the certificate of a node, which this "
            + "node demands (--peer-tls mutual).";

    private const string WrongToken = "The token is not valid: it is unknown, was revoked, or has expired.";

    /// <summary>Checks client certificates; null: they are not asked for.</summary>
    public CertificateSignIn? Certificates { get; init; }

    /// <summary>Checks JSON Web Tokens; null: none is accepted.</summary>
    public JwtSignIn? Jwts { get; init; }

    /// <summary>Every request has to say who makes it.</summary>
    public bool IsRequired => access.IsRequired;

    /// <summary>
    /// False when the records here may be too old to rely on, because the node does not hear from the leader.
    /// </summary>
    public bool IsFresh => access.IsFresh();

    /// <summary>Finds the caller of a request, or why it is refused.</summary>
    public ValueTask<SignIn> SignInAsync(HttpContext http)
    {
        StringValues node = http.Request.Headers[NodeCredential.Header];
        if (!access.IsRequired)
        {
            return new(node.Count > 0 && IsNode(http, node[^1]) ? Caller.Node : Caller.Anybody);
        }

        StringValues header = http.Request.Headers.Authorization;
        // A browser shows its certificate also for who has signed in to the page in another way.
        bool isTyped = header.Count > 0 && http.Request.Headers.ContainsKey(SignInRefusals.PageHeader);
        if (Certificates is not null && !isTyped
            && http.Features.Get<ShownCertificate>() is { IsUser: false, IsNode: false })
        {
            return new(SignInRefusal.Unauthenticated(
                OtherCertificate, http.Connection.ClientCertificate?.Subject ?? ""));
        }

        X509Certificate2? certificate = Certificates is null || isTyped || !IsOfUser(http, node)
            ? null : http.Connection.ClientCertificate;
        int ways = (node.Count > 0 ? 1 : 0) + (header.Count > 0 ? 1 : 0) + (certificate is null ? 0 : 1);
        if (ways != 1)
        {
            return new(SignInRefusal.Unauthenticated(ways == 0 ? Nothing : Several));
        }

        if (node.Count > 0)
        {
            return new(
                node.Count == 1 && IsNode(http, node[0])
                    ? Caller.Node
                    : SignInRefusal.Unauthenticated(NoNode));
        }

        ConnectionCaller? latest = http.Features.Get<ConnectionCaller>();
        AccessBook book = access.Book;
        string shown = certificate is null ? header.ToString() : "";
        return latest?.Find(shown, book) is { } same
            ? new(same)
            : LookAsync(http, certificate, header, latest, book);
    }

    /// <summary>
    /// The secret alone is enough for the way in on which the first administrator is made: who asks for that is no
    /// node.
    /// </summary>
    private bool IsNode(HttpContext http, string? given) =>
        credential.IsNode(given, http.Features.Get<ShownCertificate>())
            || (http.GetEndpoint() is { } endpoint && AccessPolicies.Find(endpoint) == AccessPolicy.Node
                && credential.Matches(given));

    /// <summary>
    /// A certificate is a way to sign in if an authority of users issued it, unless it is a node's that sends a proof.
    /// </summary>
    private static bool IsOfUser(HttpContext http, StringValues node) =>
        http.Features.Get<ShownCertificate>() is not { } shown || (shown.IsUser && !(shown.IsNode && node.Count > 0));

    /// <summary>The request says who makes it, by what the records know.</summary>
    public static bool IsSomething(HttpContext http) =>
        http.Request.Headers.Authorization.Count > 0 || http.Connection.ClientCertificate is not null;

    /// <summary>Somebody who did not sign in, as the audit log shows it. It may do nothing.</summary>
    public Caller Nobody(HttpContext http, SignInRefusal refusal) =>
        new(access, new UserRecord(0, Cut(refusal.ClaimedName)), CallerMethod.None) { Address = AddressOf(http) };

    /// <summary>A name that is longer than any is not kept as a whole.</summary>
    private static string Cut(string name) =>
        name.Length <= AccessRules.NameCharactersMax ? name : name[..AccessRules.NameCharactersMax] + "…";

    /// <summary>Where a request comes from, for the audit log.</summary>
    private static string AddressOf(HttpContext http) =>
        http.Connection.RemoteIpAddress is { } address
            ? new IPEndPoint(address, http.Connection.RemotePort).ToString()
            : "";

    private async ValueTask<SignIn> LookAsync(
        HttpContext http, X509Certificate2? certificate, StringValues header, ConnectionCaller? latest, AccessBook book)
    {
        SignIn found = certificate is not null
            ? Certificates!.Check(certificate, AddressOf(http))
            : await LookAtHeaderAsync(http, header).ConfigureAwait(false);
        if (found.Caller is not { } caller)
        {
            return found;
        }

        if (caller.End is { } end)
        {
            return SignInRefusal.Unauthenticated(end, caller.Name);
        }

        latest?.Remember(certificate is null ? header.ToString() : "", book, caller);
        return caller;
    }

    private async ValueTask<SignIn> LookAtHeaderAsync(HttpContext http, StringValues values)
    {
        if (AuthorizationHeader.Parse(values, out string reason) is not { } header)
        {
            return SignInRefusal.Unauthenticated(reason);
        }

        string address = AddressOf(http);
        if (header.User is null)
        {
            return header.Secret.StartsWith(TokenText.Prefix, StringComparison.Ordinal)
                    ? CheckToken(header.Secret, address)
                : Jwts is null ? SignInRefusal.Unauthenticated(WrongToken)
                : await Jwts.CheckAsync(header.Secret, address, http.RequestAborted).ConfigureAwait(false);
        }

        (UserRecord? user, SignInRefusal? refusal) = await passwords.CheckAsync(
            header.User, header.Secret, http.Connection.RemoteIpAddress ?? IPAddress.None).ConfigureAwait(false);
        return user is null ? refusal! : new Caller(access, user, CallerMethod.Password) { Address = address };
    }

    private SignIn CheckToken(string text, string address)
    {
        AccessBook book = access.Book;
        return TokenText.TryParse(text, out Guid id, out byte[]? secret)
            && book.FindToken(id) is { } token
            && TokenText.Verify(token, secret)
            && !token.IsExpired(access.Now)
            && book.FindUser(token.UserId) is { } user
                ? new Caller(access, user, CallerMethod.Token)
                {
                    Address = address,
                    Token = id,
                    ExpiresMs = token.ExpiresMs,
                }
                : SignInRefusal.Unauthenticated(WrongToken);
    }
}
