using Grpc.Core;
using Kahuna.Client.Outcomes;
using Kahuna.Server.Api.Errors;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Wire;

/// <summary>
/// The one row of each outcome status, docs/wire-format.md, the errors of unary calls and those of the SDK agree.
/// </summary>
public sealed class OutcomeStatusesTests
{
    public static TheoryData<byte> Statuses =>
        [.. Enum.GetValues<OutcomeStatus>().Except([OutcomeStatus.Unset]).Select(status => (byte)status)];

    public static TheoryData<byte> Errors =>
        [
            .. Enum.GetValues<OutcomeStatus>()
                .Where(status => OutcomeStatuses.Find(status)?.Error is not null)
                .Select(status => (byte)status),
        ];

    [Theory]
    [MemberData(nameof(Statuses))]
    public void Every_status_has_its_row(byte status)
    {
        OutcomeRow row = RowOf(status);
        Assert.Equal((OutcomeStatus)status, row.Status);
        Assert.EndsWith(".", row.Sentence, StringComparison.Ordinal);
        Assert.Equal(row.IsNormal, row.Error is null);
        Assert.True(row.IsNormal || Enum.IsDefined((StatusCode)row.GrpcCode), "no gRPC code");
        Assert.True(!row.IsNormal || status < 64, "a status from 64 on is answered normally");
        Assert.True(!row.IsNormal || row.Retry == RetryRule.Ends, "a normal reply is retried");
    }

    [Fact]
    public void Unknown_statuses_end_the_operation_and_may_have_happened()
    {
        foreach (OutcomeStatus unknown in Enumerable.Range(0, 256).Select(number => (OutcomeStatus)number).Except(
            Enum.GetValues<OutcomeStatus>()))
        {
            Assert.Null(OutcomeStatuses.Find(unknown));
            Assert.True(OutcomeStatuses.MayHaveHappened(unknown));
            Assert.Equal(RetryRule.Ends, OutcomeStatuses.RetryOf(unknown));
            Assert.Equal(StatusCode.Internal, OutcomeErrors.ToException(new Outcome(unknown)).StatusCode);
        }
    }

    [Theory]
    [MemberData(nameof(Statuses))]
    public void The_page_says_whether_it_happened(byte status)
    {
        OutcomeRow row = RowOf(status);
        OperationOutcome happened = WireFormatPage.Row(status, row.Status.ToString())[2] switch
        {
            "yes" or "the claim yes, the grant not yet" => OperationOutcome.Happened,
            "no" or "" => OperationOutcome.DidNotHappen,
            "unknown" or "this attempt no, an earlier one unknown" => OperationOutcome.Unknown,
            var other => throw new InvalidDataException(other),
        };
        Assert.Equal(row.Happened, happened);
    }

    [Theory]
    [MemberData(nameof(Errors))]
    public void A_unary_call_ends_with_its_code_and_trailer(byte status)
    {
        OutcomeRow row = RowOf(status);
        RpcException error = OutcomeErrors.ToException(new Outcome(row.Status));
        Assert.Equal((StatusCode)row.GrpcCode, error.StatusCode);
        Assert.Equal(
            row.Happened == OperationOutcome.Unknown ? OutcomeErrors.Unknown : OutcomeErrors.DidNotHappen,
            error.Trailers.GetValue(OutcomeErrors.OutcomeTrailer));
        Assert.EndsWith(".", error.Status.Detail, StringComparison.Ordinal);
    }

    [Theory]
    [MemberData(nameof(Errors))]
    public void The_SDK_ends_with_its_code_and_outcome(byte status)
    {
        OutcomeRow row = RowOf(status);
        KahunaException error = OperationErrors.FromOutcome(
            new Outcome(row.Status), isRead: false, mayHaveHappened: false);
        Assert.Equal((row.Error, row.Happened, row.Sentence), (error.Code, error.Outcome, error.Message));
    }

    [Theory]
    [MemberData(nameof(Errors))]
    public void A_node_passes_it_on_with_the_same_code_and_outcome(byte status)
    {
        OutcomeRow row = RowOf(status);
        if (status >= 64)
        {
            // Below 64, the leader's own outcome is passed on.
            OutcomeRow passed = OutcomeStatuses.Find(OutcomeStatuses.Of(row.Error!.Value, row.Happened))!;
            Assert.Equal((row.Error, row.Happened), (passed.Error, passed.Happened));
        }
    }

    private static OutcomeRow RowOf(byte status) =>
        OutcomeStatuses.Find((OutcomeStatus)status)
            ?? throw new InvalidDataException($"{(OutcomeStatus)status} has no row.");
}
