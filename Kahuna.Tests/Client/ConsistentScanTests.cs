using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Outcomes;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Client;

/// <summary>How a client finds one moment of several partitions, and what it does when the moment is lost.</summary>
public sealed class ConsistentScanTests
{
    private const int Partitions = 3;

    private static readonly ScanOptions s_consistent = new() { Consistent = true };

    private readonly FakeCluster _cluster = new(partitions: Partitions);
    private readonly List<(CommandKind Kind, long Partition, long Cut)> _asked = [];
    private readonly Lock _lock = new();
    private long _cuts = 100;

    /// <summary>What a request is answered with, if not as usual.</summary>
    private Func<CommandKind, long, FakeReply?> _answer = static (_, _) => null;

    public ConsistentScanTests() => _cluster[1].Answer = Answer;

    [Fact]
    public async Task Cuts_are_confirmed_when_all_are_open_and_pages_and_ends_name_them()
    {
        await using KahunaClient client = await _cluster.ConnectedAsync();
        Assert.Equal(Partitions, (await ReadAsync(client, s_consistent)).Count);
        await Wait.UntilAsync(() => Asked(CommandKind.CutEnd).Length == Partitions);
        Assert.Equal(
            [CommandKind.CutOpen, CommandKind.CutConfirm, CommandKind.KeyRange, CommandKind.CutEnd],
            _asked.Select(static asked => asked.Kind).Distinct());
        Assert.All(
            _asked.Chunk(Partitions), static step => Assert.Single(step.Select(static one => one.Kind).Distinct()));
        foreach (CommandKind kind in new[] { CommandKind.CutConfirm, CommandKind.KeyRange, CommandKind.CutEnd })
        {
            Assert.Equal([101L, 102, 103], Asked(kind).Select(static asked => asked.Cut).Order());
        }
    }

    [Fact]
    public async Task Other_scans_open_no_cuts()
    {
        await using KahunaClient client = await _cluster.ConnectedAsync();
        Assert.Equal(Partitions, (await ReadAsync(client, new ScanOptions())).Count);
        Assert.All(_asked, static asked => Assert.Equal((CommandKind.KeyRange, 0L), (asked.Kind, asked.Cut)));
    }

    [Fact]
    public async Task A_range_that_has_changed_is_opened_anew_in_each_further_try_and_all_are_confirmed_again()
    {
        await using KahunaClient client = await _cluster.ConnectedAsync();
        int[] changes = [1, 0, 2];
        _answer = (kind, partition) => kind == CommandKind.CutConfirm && changes[partition]-- > 0
            ? new FakeReply(OutcomeStatus.ConditionFailed) : null;
        Assert.Equal(Partitions, (await ReadAsync(client, s_consistent)).Count);
        Assert.Equal(3, Opened(0));
        Assert.Equal(1, Opened(1));
        Assert.Equal(3, Opened(2));
        Assert.Equal(3 * Partitions, Asked(CommandKind.CutConfirm).Length);
    }

    [Fact]
    public async Task A_range_that_changes_all_the_time_is_given_up_and_nothing_stays_open()
    {
        await using KahunaClient client = await _cluster.ConnectedAsync();
        _answer = static (kind, partition) => kind == CommandKind.CutConfirm && partition == 1
            ? new FakeReply(OutcomeStatus.ConditionFailed) : null;
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(() => ReadAsync(client, s_consistent));
        Assert.Equal((KahunaErrorCode.ScanExpired, OperationOutcome.DidNotHappen), (failure.Code, failure.Outcome));
        Assert.Contains("10 tries", failure.Message, StringComparison.Ordinal);
        Assert.Empty(Asked(CommandKind.KeyRange));
        await Wait.UntilAsync(() => Asked(CommandKind.CutEnd).Length == _cuts - 100);
    }

    [Fact]
    public async Task A_cancellation_between_two_tries_is_the_clients_own_and_ends_the_cuts()
    {
        await using KahunaClient client = await _cluster.ConnectedAsync();
        using CancellationTokenSource end = new();
        _answer = (kind, _) =>
        {
            if (kind == CommandKind.CutConfirm
                && _asked.Count(static asked => asked.Kind == CommandKind.CutConfirm) == 4 * Partitions)
            {
                end.CancelAfter(5);
            }

            return kind == CommandKind.CutConfirm ? new FakeReply(OutcomeStatus.ConditionFailed) : null;
        };
        KahunaCanceledException canceled = await Assert.ThrowsAsync<KahunaCanceledException>(
            () => client.KeyValues.CountAsync("", s_consistent, end.Token).AsTask());
        Assert.Equal(OperationOutcome.DidNotHappen, canceled.Outcome);
        await Wait.UntilAsync(() => Asked(CommandKind.CutEnd).Length == _cuts - 100);
    }

    [Fact]
    public async Task A_moment_that_is_lost_before_the_first_key_is_looked_for_again()
    {
        await using KahunaClient client = await _cluster.ConnectedAsync();
        int losses = 2;
        _answer = (kind, partition) => kind == CommandKind.KeyRange && partition == 2 && losses-- > 0
            ? new FakeReply(OutcomeStatus.ScanExpired) : null;
        Assert.Equal(Partitions, (await ReadAsync(client, s_consistent)).Count);
        Assert.Equal(3, Opened(0));
        losses = 1;
        Assert.Equal(Partitions, await client.KeyValues.CountAsync("", s_consistent));
    }

    [Fact]
    public async Task A_moment_that_is_lost_later_ends_the_scan()
    {
        await using KahunaClient client = await _cluster.ConnectedAsync();
        int pages = 0;
        _answer = (kind, partition) => kind != CommandKind.KeyRange ? null
            : partition > 0 ? Page(null) : ++pages == 1 ? Page("a", "a") : new FakeReply(OutcomeStatus.ScanExpired);
        List<string> found = [];
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(async () =>
        {
            await foreach (KeyValueEntry entry in client.KeyValues.ScanAsync("", s_consistent))
            {
                found.Add(entry.Key);
            }
        });
        Assert.Equal(KahunaErrorCode.ScanExpired, failure.Code);
        Assert.Contains("Begin the scan again", failure.Message, StringComparison.Ordinal);
        Assert.Equal(["a"], found);
    }

    [Fact]
    public async Task A_scan_that_is_left_early_ends_its_cuts()
    {
        await using KahunaClient client = await _cluster.ConnectedAsync();
        await foreach (KeyValueEntry entry in client.KeyValues.ScanAsync("", s_consistent))
        {
            break;
        }

        await Wait.UntilAsync(() => Asked(CommandKind.CutEnd).Length == Partitions);
    }

    private static async Task<List<string>> ReadAsync(KahunaClient client, ScanOptions options)
    {
        List<string> found = [];
        await foreach (KeyValueEntry entry in client.KeyValues.ScanAsync("", options))
        {
            found.Add(entry.Key);
        }

        return found;
    }

    private (CommandKind Kind, long Partition, long Cut)[] Asked(CommandKind kind)
    {
        lock (_lock)
        {
            return [.. _asked.Where(asked => asked.Kind == kind)];
        }
    }

    private int Opened(long partition) => Asked(CommandKind.CutOpen).Count(asked => asked.Partition == partition);

    private FakeReply Answer(FakeRequest request)
    {
        long partition = request.WaitingMs!.Value;
        lock (_lock)
        {
            _asked.Add((request.Kind, partition, (request.Flags & CommandFlags.IfRevision) == 0 ? 0 : request.Token));
            return _answer(request.Kind, partition) ?? request.Kind switch
            {
                CommandKind.CutOpen => new FakeReply(OutcomeStatus.Found, 0, ++_cuts),
                CommandKind.KeyRange => Page(null, $"key{partition}"),
                _ => new FakeReply(OutcomeStatus.Found),
            };
        }
    }

    private static FakeReply Page(string? last, params string[] keys)
    {
        ByteBuffer page = ByteBuffer.Rent();
        RangePage.WriteHeader(page, System.Text.Encoding.UTF8.GetBytes(last ?? ""), keys.Length);
        foreach (string key in keys)
        {
            RangePage.Append(page, System.Text.Encoding.UTF8.GetBytes(key), "v"u8, isNull: false, revision: 1);
        }

        FakeReply reply = new(OutcomeStatus.Found, 0, keys.Length, page.Written.ToArray());
        page.Return();
        return reply;
    }
}
