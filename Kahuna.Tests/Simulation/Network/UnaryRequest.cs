using Kahuna.Server.Api.Protos;

namespace Kahuna.Tests.Simulation.Network;

/// <summary>What a unary call asks for.</summary>
/// <param name="Command">An encoded command.</param>
/// <param name="Acquire">Or a lock.</param>
/// <param name="Session">The session of which the acquire is the first call; 0: it has no number.</param>
internal readonly record struct UnaryRequest(byte[]? Command, AcquireLockRequest? Acquire = null, ulong Session = 0);
