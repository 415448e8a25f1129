using Kahuna.Client;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Client;

/// <summary>
/// A commit whose first answer is lost, and which is refused when it is sent again: the first attempt has freed what
/// the transaction held, and another transaction holds it.
/// </summary>
public sealed class DoubtfulCommitTests
{
    private readonly FakeCluster _cluster = new();
    private int _commits;
    private int _runs;

    [Fact]
    public async Task Its_outcome_is_unknown_and_the_work_is_not_run_again()
    {
        await using KahunaClient client = _cluster.Client();
        _cluster[1].Answer = request => Answer(request, isLost: true);
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(
            () => RunAsync(client).WaitAsync(Wait.Longest));
        Assert.Equal((KahunaErrorCode.OutcomeUnknown, OperationOutcome.Unknown), (failure.Code, failure.Outcome));
        Assert.False(failure.IsSafeToRetry);
        Assert.DoesNotContain("nothing was", failure.Message, StringComparison.Ordinal);
        Assert.Equal((1, 2), (_runs, _commits));
    }

    [Fact]
    public async Task Refused_at_once_it_is_run_again()
    {
        await using KahunaClient client = _cluster.Client();
        _cluster[1].Answer = request => Answer(request, isLost: false);
        await RunAsync(client).WaitAsync(Wait.Longest);
        Assert.Equal((2, 2), (_runs, _commits));
    }

    private Task<int> RunAsync(KahunaClient client) => client.Transactions.RunAsync(async transaction =>
    {
        _runs++;
        await transaction.IncrementAsync("a/1");
        await transaction.IncrementAsync("a/2");
        return _runs;
    });

    private FakeReply Answer(FakeRequest request, bool isLost)
    {
        if (request.Kind != CommandKind.Transaction)
        {
            return FakeReply.Found("1");
        }

        _commits++;
        return (_commits, isLost) switch
        {
            (1, true) => new FakeReply(OutcomeStatus.Unknown),
            (1, false) or (2, true) => new FakeReply(
                OutcomeStatus.TransactionConflict,
                Value: "Another transaction holds a key that this one has held before; nothing was changed."u8
                    .ToArray()),
            _ => new FakeReply(OutcomeStatus.Applied, Value: []),
        };
    }
}
