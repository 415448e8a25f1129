using Grpc.Core;
using Kahuna.Client.Wire.Commands;
using Kahuna.Server.Api.Protos;

namespace Kahuna.Server.Api;

/// <summary>The durability of a unary call as commands have it. Stateless.</summary>
internal static class DurabilityField
{
    /// <summary>One that was not set, or that nobody knows, is refused with the command; here, one that a command cannot say.</summary>
    /// <exception cref="RpcException">INVALID_ARGUMENT: it is none that a command can say.</exception>
    public static CommandDurability Read(Durability durability) => durability is >= 0 and <= (Durability)byte.MaxValue
        ? (CommandDurability)durability
        : throw OutcomeErrors.Build(StatusCode.InvalidArgument, $"durability {(int)durability} is unknown.", OutcomeErrors.DidNotHappen);
}
