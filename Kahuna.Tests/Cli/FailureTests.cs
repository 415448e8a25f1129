using Kahuna.Cli.Errors;

namespace Kahuna.Tests.Cli;

/// <summary>The exit code of each failure; scripts depend on them.</summary>
public sealed class FailureTests
{
    public static TheoryData<KahunaErrorCode> Codes => new(Enum.GetValues<KahunaErrorCode>());

    [Theory]
    [InlineData(KahunaErrorCode.Unavailable, ExitCode.Unavailable)]
    [InlineData(KahunaErrorCode.DeadlineExceeded, ExitCode.Unavailable)]
    [InlineData(KahunaErrorCode.Untrusted, ExitCode.Unavailable)]
    [InlineData(KahunaErrorCode.Unauthenticated, ExitCode.Denied)]
    [InlineData(KahunaErrorCode.PermissionDenied, ExitCode.Denied)]
    [InlineData(KahunaErrorCode.NotFound, ExitCode.NotThere)]
    [InlineData(KahunaErrorCode.LockBusy, ExitCode.NotThere)]
    [InlineData(KahunaErrorCode.InvalidArgument, ExitCode.Usage)]
    [InlineData(KahunaErrorCode.LogFull, ExitCode.Refused)]
    [InlineData(KahunaErrorCode.QuotaExceeded, ExitCode.Refused)]
    [InlineData(KahunaErrorCode.LockLost, ExitCode.Refused)]
    public void A_refusal_that_changed_nothing_has_the_exit_code_of_its_reason(KahunaErrorCode code, int exitCode) =>
        Assert.Equal(exitCode, Of(code, OperationOutcome.DidNotHappen).ExitCode);

    [Theory]
    [MemberData(nameof(Codes))]
    public void An_unknown_outcome_has_an_exit_code_of_its_own(KahunaErrorCode code)
    {
        (string sentence, int exitCode) = Of(code, OperationOutcome.Unknown);
        Assert.Equal(ExitCode.Unknown, exitCode);
        Assert.Contains("before you repeat", sentence, StringComparison.Ordinal);
    }

    [Fact]
    public void An_interrupted_command_says_whether_it_may_have_happened()
    {
        (OperationOutcome Outcome, string Expected)[] rows =
        [
            (OperationOutcome.DidNotHappen, "Interrupted."),
            (OperationOutcome.Unknown, "not known"),
            (OperationOutcome.Happened, "was made"),
        ];
        foreach ((OperationOutcome outcome, string expected) in rows)
        {
            (string sentence, int exitCode) = FailureText.Of(new KahunaCanceledException(outcome, default), false);
            Assert.Equal(ExitCode.Interrupted, exitCode);
            Assert.Contains(expected, sentence, StringComparison.Ordinal);
        }
    }

    [Fact]
    public void A_fault_of_the_tool_is_told_in_a_sentence_and_leaves_the_outcome_open()
    {
        (string sentence, int exitCode) = FailureText.Of(new InvalidOperationException("out of step"), false);
        Assert.Equal(ExitCode.Unknown, exitCode);
        Assert.Contains("out of step", sentence, StringComparison.Ordinal);
    }

    [Fact]
    public void Options_have_the_names_of_the_command_line()
    {
        const string Message = "not trusted; set KahunaClientOptions.TrustedCaFile";
        (string sentence, _) = FailureText.Of(
            new KahunaException(KahunaErrorCode.Untrusted, OperationOutcome.DidNotHappen, Message), false);
        Assert.DoesNotContain("TrustedCaFile", sentence, StringComparison.Ordinal);
        Assert.Contains("--trusted-ca", sentence, StringComparison.Ordinal);
    }

    private static (string Sentence, int ExitCode) Of(KahunaErrorCode code, OperationOutcome outcome) =>
        FailureText.Of(new KahunaException(code, outcome, "It failed."), isSignedIn: true);
}
