using Grpc.Core;
using Kahuna.Server.Api.Errors;
using Kahuna.Server.Api.Protos;

namespace Kahuna.Tests.Simulation.Network;

/// <summary>What came back from a unary call: the bytes of a normal outcome, or the error that ended it.</summary>
internal readonly record struct UnaryAnswer(byte[]? Outcome, RpcException? Error)
{
    /// <summary>What came back from an acquire, in place of an outcome.</summary>
    public AcquireLockResponse? Acquired { get; init; }

    /// <summary>No node has seen the call.</summary>
    public bool NeverSent { get; init; }

    public static UnaryAnswer Refused { get; } =
        new(null, new RpcException(new Status(StatusCode.Unavailable, "connection refused"))) { NeverSent = true };

    public static UnaryAnswer Lost { get; } = new(
        null, new RpcException(new Status(StatusCode.Unavailable, "connection lost")));

    public static UnaryAnswer Late { get; } = new(
        null, new RpcException(new Status(StatusCode.DeadlineExceeded, "no answer in time")));

    /// <summary>The operation surely did not happen.</summary>
    public bool DidNotHappen =>
        Error is { } error
            && (NeverSent || error.Trailers.GetValue(OutcomeErrors.OutcomeTrailer) == OutcomeErrors.DidNotHappen);
}
