namespace Kahuna.Server.Api.Grpc;

/// <summary>
/// What every error of a call with one request and one reply says of the call's effect, unless its handler said so itself. Immutable.
/// </summary>
/// <param name="Name">Name of the trailer.</param>
/// <param name="NotBegun">Its text when the handler had not begun: the request was malformed, incomplete or late.</param>
/// <param name="Begun">Its text when the handler had begun.</param>
internal sealed record OutcomeTrailer(string Name, string NotBegun, string Begun);
