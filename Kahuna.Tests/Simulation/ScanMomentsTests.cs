using Kahuna.Tests.Simulation.Workload;

namespace Kahuna.Tests.Simulation;

/// <summary>The rule of consistent scans accepts what has a moment, and finds what has none.</summary>
public sealed class ScanMomentsTests
{
    private readonly List<Call> _calls = [];

    [Fact]
    public void A_scan_of_one_moment_has_one()
    {
        Write("a", 1, 0, 10);
        Write("b", 1, 20, 30);
        Write("a", 2, 40, 50);
        Assert.Null(Check(35, 36, ("a", 1), ("b", 1)));
        Assert.Null(Check(35, 60, ("a", 2), ("b", 1)));
        Assert.Null(Check(15, 60, ("a", 1), ("b", null)));

        // Writes that overlap the scan may be in it or not.
        Assert.Null(Check(45, 46, ("a", 1), ("b", 1)));
        Assert.Null(Check(45, 46, ("a", 2), ("b", 1)));
    }

    [Fact]
    public void Pages_of_two_moments_have_none()
    {
        // The first write was answered before the second began, and only the second is shown.
        Write("a", 1, 0, 10);
        Write("b", 1, 0, 10);
        Write("a", 2, 40, 50);
        Write("b", 2, 60, 70);
        Assert.Null(Check(30, 80, ("a", 2), ("b", 1)));
        Assert.Contains("not after 50", Check(30, 80, ("a", 1), ("b", 2)), StringComparison.Ordinal);
    }

    [Fact]
    public void A_moment_lies_between_the_beginning_and_the_first_key()
    {
        Write("a", 1, 0, 10);
        Write("a", 2, 20, 30);
        Assert.NotNull(Check(35, 40, ("a", 1)));
        Assert.NotNull(Check(12, 15, ("a", 2)));
    }

    [Fact]
    public void A_key_that_was_there_for_certain_is_not_left_out()
    {
        Write("a", 3, 0, 10);
        Read("a", 3, 50, 55);
        Assert.NotNull(Check(20, 45, ("a", null)));
        Assert.Null(Check(20, 50, ("a", null)));
        Assert.Null(Check(5, 45, ("a", null)));

        // Nothing is known of it after the last read.
        Assert.Null(Check(60, 65, ("a", null)));
    }

    [Fact]
    public void Holes_of_several_keys_add_up()
    {
        Write("a", 1, 0, 10);
        Read("a", 1, 30, 31);
        Write("b", 1, 0, 25);
        Read("b", 1, 60, 61);
        Assert.NotNull(Check(15, 55, ("a", null), ("b", null)));
        Assert.Null(Check(15, 60, ("a", null), ("b", null)));
        Assert.Null(Check(5, 60, ("a", null), ("b", null)));
    }

    [Fact]
    public void An_earlier_revision_that_was_read_bounds_the_moment()
    {
        Read("a", 1, 40, 41);
        Assert.NotNull(Check(20, 39, ("a", 2)));
        Assert.Null(Check(20, 45, ("a", 2)));
    }

    [Fact]
    public void A_deletion_is_a_later_revision()
    {
        Write("a", 1, 0, 10);
        _calls.Add(new Call
        {
            Process = 1,
            Key = "a",
            Kind = CallKind.Delete,
            CallNs = 20,
            ReturnNs = 25,
            Outcome = CallOutcome.Ok,
            Done = true,
            Revision = 2,
        });
        Assert.NotNull(Check(30, 40, ("a", 1)));
        Assert.Null(Check(22, 40, ("a", 1)));
        Assert.Null(Check(30, 40, ("a", null)));
    }

    private string? Check(long beginNs, long openedNs, params (string Key, long? Revision)[] shown) =>
        ScanMoments.Check(
            _calls,
            [new ScanMoment(beginNs, openedNs, shown.ToDictionary(static key => key.Key, static key => key.Revision))]);

    private void Write(string key, long revision, long callNs, long returnNs) =>
        Add(CallKind.Set, key, revision, callNs, returnNs);

    private void Read(string key, long revision, long callNs, long returnNs) =>
        Add(CallKind.Get, key, revision, callNs, returnNs);

    private void Add(CallKind kind, string key, long revision, long callNs, long returnNs) => _calls.Add(new Call
    {
        Process = 1,
        Key = key,
        Kind = kind,
        CallNs = callNs,
        ReturnNs = returnNs,
        Outcome = CallOutcome.Ok,
        Done = true,
        Revision = revision,
    });
}
