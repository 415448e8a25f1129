namespace Kahuna.Cli.Errors;

/// <summary>Turns what went wrong into one sentence and an exit code. Static, any thread.</summary>
internal static class FailureText
{
    private const string ReadFirst = "Read what is there before you repeat the command.";

    /// <summary>The sentence and the exit code of a failure.</summary>
    /// <param name="failure">What a command has thrown.</param>
    /// <param name="isSignedIn">The command had credentials.</param>
    public static (string Sentence, int ExitCode) Of(Exception failure, bool isSignedIn) => failure switch
    {
        CliException own => (own.Message, own.ExitCode),
        KahunaException refusal => Of(refusal, isSignedIn),
        KahunaCanceledException { Outcome: OperationOutcome.Unknown } =>
            ($"Interrupted after the change had been sent; whether it is made is not known. {ReadFirst}",
                ExitCode.Interrupted),
        KahunaCanceledException { Outcome: OperationOutcome.Happened } =>
            ("Interrupted; the change was made.", ExitCode.Interrupted),
        OperationCanceledException => ("Interrupted.", ExitCode.Interrupted),
        ArgumentException wrong => (WithOptions(WithoutParameter(wrong)), ExitCode.Usage),
        IOException or UnauthorizedAccessException => (Sentence(failure.Message), ExitCode.Usage),
        _ => (
            $"A fault of this tool: {failure.GetType().Name}: {Sentence(failure.Message)} {ReadFirst} Report it.",
            ExitCode.Unknown),
    };

    private static (string, int) Of(KahunaException refusal, bool isSignedIn)
    {
        string sentence = WithOptions(Sentence(refusal.Message));
        return refusal.Outcome == OperationOutcome.Unknown ? ($"{sentence} {ReadFirst}", ExitCode.Unknown)
            : refusal.Code switch
            {
                KahunaErrorCode.Untrusted =>
                    (sentence.Contains("--trusted-ca", StringComparison.Ordinal)
                        ? sentence
                        : $"{sentence} Name the file of its authority with --trusted-ca.", ExitCode.Unavailable),
                KahunaErrorCode.Unauthenticated => (isSignedIn
                    ? $"{sentence} Check --user with --password-file, --token-file or --client-certificate."
                    : "The cluster requires credentials. Sign in with --user and --password-file, --token-file or "
                        + "--client-certificate, or use a context that has them.", ExitCode.Denied),
                KahunaErrorCode.PermissionDenied => (sentence, ExitCode.Denied),
                KahunaErrorCode.Unavailable or KahunaErrorCode.DeadlineExceeded or KahunaErrorCode.ConnectionLost =>
                    ($"{sentence} Check the endpoints (-c) and 'kahuna doctor'.", ExitCode.Unavailable),
                KahunaErrorCode.NotFound or KahunaErrorCode.AlreadyExists or KahunaErrorCode.SequenceNotFound
                    or KahunaErrorCode.LockBusy or KahunaErrorCode.RevisionCompacted => (sentence, ExitCode.NotThere),
                KahunaErrorCode.InvalidArgument => (sentence, ExitCode.Usage),
                _ => (sentence, ExitCode.Refused),
            };
    }

    /// <summary>The SDK speaks of its options; here they are options of the command line.</summary>
    private static string WithOptions(string sentence) => sentence
        .Replace("KahunaClientOptions.", "", StringComparison.Ordinal)
        .Replace("set TrustedCaFile to the file of its authority", "name the file of its authority with --trusted-ca",
            StringComparison.Ordinal)
        .Replace("TrustedCaFile", "--trusted-ca", StringComparison.Ordinal)
        .Replace("Insecure and --trusted-ca", "--insecure and --trusted-ca", StringComparison.Ordinal);

    private static string WithoutParameter(ArgumentException wrong)
    {
        int name = wrong.Message.IndexOf(" (Parameter '", StringComparison.Ordinal);
        return Sentence(name < 0 ? wrong.Message : wrong.Message[..name]);
    }

    private static string Sentence(string message) => message.EndsWith('.') ? message : message + ".";
}
