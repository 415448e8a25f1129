using Kahuna.Server.Access;
using Kahuna.Server.Cluster;
using Kahuna.Server.State.Meta;
using Kahuna.Tests.Client;

namespace Kahuna.Tests.Access;

/// <summary>How a change of the records ends for its caller.</summary>
public sealed class AccessLedgerTests
{
    private static readonly AccessRow s_row = new((byte)'x', [1], [2]);

    private readonly ManualTime _time = new();
    private readonly AccessState _access;
    private readonly List<MetaCommand> _asked = [];
    private ulong _ids;
    private readonly AccessLedger _ledger;

    public AccessLedgerTests()
    {
        _access = new AccessState(isRequired: true, _time);
        _ledger = new AccessLedger(_access, _asked.Add, () => new AccessChangeId(1, ++_ids), _time);
    }

    [Fact]
    public async Task It_is_applied_when_this_node_has_it()
    {
        Task<AccessCommit> change = _ledger.ChangeAsync(0, [s_row], default);
        Assert.False(change.IsCompleted);
        _access.Publish(new AccessRows(1, [IdOf(_asked[0])], [s_row]));
        Assert.Equal(AccessCommit.Applied, await change.WaitAsync(Wait.Longest));
    }

    [Fact]
    public async Task It_is_asked_for_again_until_it_is_applied()
    {
        Task<AccessCommit> change = _ledger.ChangeAsync(0, [s_row], default);
        for (int i = 1; i <= 3; i++)
        {
            Assert.Equal(i, _asked.Count);
            _time.Advance(AccessLedger.Interval);
            await Wait.UntilAsync(() => _asked.Count == i + 1);
        }

        Assert.Single(_asked.Select(IdOf).Distinct());
        _access.Publish(new AccessRows(1, [IdOf(_asked[0])], [s_row]));
        Assert.Equal(AccessCommit.Applied, await change.WaitAsync(Wait.Longest));
    }

    [Fact]
    public async Task It_is_found_behind_later_changes()
    {
        Task<AccessCommit> change = _ledger.ChangeAsync(0, [s_row], default);
        _access.Publish(new AccessRows(3, [IdOf(_asked[0]), new(7, 7), new(8, 8)], []));
        Assert.Equal(AccessCommit.Applied, await change.WaitAsync(Wait.Longest));
    }

    [Fact]
    public async Task Another_change_in_its_place_is_a_conflict()
    {
        Task<AccessCommit> change = _ledger.ChangeAsync(0, [s_row], default);
        _access.Publish(new AccessRows(2, [new(7, 7), IdOf(_asked[0])], []));
        Assert.Equal(AccessCommit.Conflict, await change.WaitAsync(Wait.Longest));
        Assert.Equal(AccessCommit.Conflict, await _ledger.ChangeAsync(1, [s_row], default));
    }

    [Fact]
    public async Task What_is_no_longer_known_is_unknown()
    {
        Task<AccessCommit> change = _ledger.ChangeAsync(0, [s_row], default);
        _access.Publish(new AccessRows(40, [.. Enumerable.Repeat(new AccessChangeId(7, 7), 16)], []));
        Assert.Equal(AccessCommit.Unknown, await change.WaitAsync(Wait.Longest));
    }

    [Fact]
    public async Task Without_a_leader_it_is_unknown_after_a_while()
    {
        Task<AccessCommit> change = _ledger.ChangeAsync(0, [s_row], default);
        while (!change.IsCompleted)
        {
            int asked = _asked.Count;
            _time.Advance(AccessLedger.Interval);
            await Wait.UntilAsync(() => change.IsCompleted || _asked.Count > asked);
        }

        Assert.Equal(AccessCommit.Unknown, await change);
    }

    [Fact]
    public async Task A_caller_that_leaves_ends_the_wait()
    {
        using CancellationTokenSource left = new();
        Task<AccessCommit> change = _ledger.ChangeAsync(0, [s_row], left.Token);
        await left.CancelAsync();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => change.WaitAsync(Wait.Longest));
    }

    [Fact]
    public async Task Records_that_would_be_too_large_are_refused_at_once()
    {
        AccessRow[] rows =
        [
            .. Enumerable.Range(0, (int)(AccessTable.BytesMax / AccessRow.ValueBytesMax) + 1)
                .Select(static i => new AccessRow((byte)'x', [(byte)i, (byte)(i >> 8)], new byte[65_536])),
        ];
        Assert.Equal(AccessCommit.Full, await _ledger.ChangeAsync(0, rows, default));
        Assert.Empty(_asked);
    }

    private static AccessChangeId IdOf(MetaCommand asked) => new(asked.Incarnation, asked.Nonce);
}
