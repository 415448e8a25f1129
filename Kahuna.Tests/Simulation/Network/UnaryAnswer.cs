using Kahuna.Client.Wire.Grpc;
using Kahuna.Client.Wire.Protos;
using Kahuna.Server.Api;

namespace Kahuna.Tests.Simulation.Network;

/// <summary>What came back from a unary call: the bytes of a normal outcome, or the error that ended it.</summary>
internal readonly record struct UnaryAnswer(byte[]? Outcome, GrpcException? Error)
{
    /// <summary>What came back from an acquire, in place of an outcome.</summary>
    public AcquireLockResponse? Acquired { get; init; }

    public static UnaryAnswer Refused { get; } = new(null, new GrpcException(GrpcStatusCode.Unavailable, "connection refused") { NeverProcessed = true });

    public static UnaryAnswer Lost { get; } = new(null, new GrpcException(GrpcStatusCode.Unavailable, "connection lost"));

    public static UnaryAnswer Late { get; } = new(null, new GrpcException(GrpcStatusCode.DeadlineExceeded, "no answer in time"));

    /// <summary>The operation surely did not happen.</summary>
    public bool DidNotHappen => Error is { } error && (error.NeverProcessed || error.Trailers.GetText(OutcomeErrors.OutcomeTrailer) == OutcomeErrors.DidNotHappen);
}
