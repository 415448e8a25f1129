namespace Kahuna.Client.Connection;

/// <summary>
/// A node ended a stream, or refused to open one, because of who the client is or what it may do. Immutable; any
/// thread.
/// </summary>
/// <param name="Code">Unauthenticated or PermissionDenied.</param>
/// <param name="Message">The node's reason; empty for none.</param>
internal sealed record AccessRefusal(KahunaErrorCode Code, string Message)
{
    private const int PermissionDenied = 7;
    private const int Unauthenticated = 16;

    /// <summary>The client did not say who it is, or what it said does not hold.</summary>
    public bool IsUnauthenticated => Code == KahunaErrorCode.Unauthenticated;

    /// <summary>What a stream's end says; null when it ended for another reason.</summary>
    public static AccessRefusal? Of(StreamStatus? end) => end switch
    {
        { Code: Unauthenticated } status => new AccessRefusal(KahunaErrorCode.Unauthenticated, status.Message),
        { Code: PermissionDenied } status => new AccessRefusal(KahunaErrorCode.PermissionDenied, status.Message),
        _ => null,
    };

    /// <summary>Such an end among a failure's causes; otherwise null.</summary>
    public static AccessRefusal? Find(Exception? failure)
    {
        for (; failure is not null; failure = failure.InnerException)
        {
            if (failure is StreamRefusedException refused)
            {
                return Of(refused.Status);
            }
        }

        return null;
    }

    /// <summary>The error of a call that waited for the node.</summary>
    public KahunaException ToException(bool mayHaveHappened)
    {
        string sentence = Message.Length > 0 ? Message
            : IsUnauthenticated ? "The client's credentials are missing, wrong, expired or revoked."
            : "The user may not connect.";
        return new KahunaException(
            Code,
            mayHaveHappened ? OperationOutcome.Unknown : OperationOutcome.DidNotHappen,
            sentence.EndsWith('.') ? sentence : sentence + ".");
    }
}
