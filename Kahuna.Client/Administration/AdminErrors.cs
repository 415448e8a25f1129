using Kahuna.Client.Connection;

namespace Kahuna.Client.Administration;

/// <summary>Creates the exceptions with which calls of the administration end. Stateless; any thread.</summary>
internal static class AdminErrors
{
    /// <summary>A node answered with an error.</summary>
    public static KahunaException Of(StreamStatus status, OperationOutcome outcome)
    {
        // https://grpc.io/docs/guides/status-codes/
        KahunaErrorCode code = status.Code switch
        {
            3 or 11 => KahunaErrorCode.InvalidArgument,
            4 => KahunaErrorCode.DeadlineExceeded,
            5 => KahunaErrorCode.NotFound,
            6 => KahunaErrorCode.AlreadyExists,
            7 => KahunaErrorCode.PermissionDenied,
            8 => KahunaErrorCode.LimitReached,
            9 => KahunaErrorCode.FailedPrecondition,
            10 => KahunaErrorCode.ChangeConflict,
            12 => KahunaErrorCode.Unimplemented,
            13 => KahunaErrorCode.Internal,
            14 => KahunaErrorCode.Unavailable,
            16 => KahunaErrorCode.Unauthenticated,
            _ => KahunaErrorCode.Protocol,
        };

        // What these say is said before anything is changed; a server that is older or in between adds no trailer.
        bool isRefused = code is KahunaErrorCode.InvalidArgument or KahunaErrorCode.NotFound
            or KahunaErrorCode.AlreadyExists or KahunaErrorCode.PermissionDenied or KahunaErrorCode.LimitReached
            or KahunaErrorCode.FailedPrecondition or KahunaErrorCode.Unimplemented or KahunaErrorCode.Unauthenticated;
        return new KahunaException(
            code,
            isRefused ? OperationOutcome.DidNotHappen : outcome,
            status.Message.Length == 0 ? status + "." : Sentence(status.Message));
    }

    /// <summary>The connection was lost after a change had been sent.</summary>
    public static KahunaException Lost(Uri node, string reason) => new(
        KahunaErrorCode.ConnectionLost,
        OperationOutcome.Unknown,
        $"The connection to {node.Authority} was lost ({reason}) after the change had been sent; whether it was made "
            + "is not known.");

    /// <summary>The request timeout passed.</summary>
    public static KahunaException TimedOut(OperationOutcome outcome, string? reason) =>
        outcome == OperationOutcome.DidNotHappen && reason is not null
            ? new KahunaException(
                KahunaErrorCode.Unavailable,
                outcome,
                $"No node carried out the call until the request timeout: {Sentence(reason)}")
            : new KahunaException(
                KahunaErrorCode.DeadlineExceeded,
                outcome,
                outcome == OperationOutcome.DidNotHappen
                    ? "No reply came before the request timeout."
                    : "The change was sent, and no reply came before the request timeout; whether it was made is not "
                        + "known.");

    /// <summary>The answer is no message of this version.</summary>
    public static KahunaException Unreadable(OperationOutcome outcome) =>
        new(KahunaErrorCode.Protocol, outcome, "The node's answer cannot be read by this client.");

    private static string Sentence(string text) => text.EndsWith('.') ? text : text + ".";
}
