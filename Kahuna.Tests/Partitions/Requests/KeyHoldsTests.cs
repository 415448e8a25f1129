using System.Text;
using Kahuna.Server.Partitions.Requests;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.Partitions.Requests;

/// <summary>The queue rules of the keys that pessimistic transactions hold.</summary>
public sealed class KeyHoldsTests
{
    private readonly KeyHolds _holds;
    private long _writes;
    private NodeTime _now = new(1_000);

    public KeyHoldsTests() => _holds = new KeyHolds(() => _writes);

    [Fact]
    public void Shared_holds_share_and_an_exclusive_one_is_alone()
    {
        Assert.Equal(HoldVerdict.Granted, Ask(1, "k", HoldMode.Shared));
        Assert.Equal(HoldVerdict.Granted, Ask(2, "k", HoldMode.Shared));
        Assert.Equal(HoldVerdict.Waits, Ask(3, "k", HoldMode.Exclusive));
        Assert.Equal(HoldVerdict.Granted, Ask(3, "other", HoldMode.Shared));
        Release(1);
        Assert.Empty(Granted());
    }

    [Fact]
    public void A_shared_request_does_not_overtake_an_exclusive_one_that_waits()
    {
        Ask(1, "k", HoldMode.Shared);
        Assert.Equal(HoldVerdict.Waits, Ask(2, "k", HoldMode.Exclusive));
        Assert.Equal(HoldVerdict.Waits, Ask(3, "k", HoldMode.Shared));
        Assert.Equal(HoldVerdict.Waits, Ask(4, "k", HoldMode.Shared));
        Release(1);
        Assert.Equal([2], Granted());
        Release(2);
        Assert.Equal([3, 4], Granted());
    }

    [Fact]
    public void Who_holds_others_waits_for_younger_ones_only()
    {
        Ask(2, "k", HoldMode.Exclusive);
        Ask(1, "one", HoldMode.Shared);
        Ask(3, "three", HoldMode.Shared);
        Assert.Equal(HoldVerdict.Dies, Ask(3, "k", HoldMode.Shared));
        Assert.Equal(HoldVerdict.Waits, Ask(1, "k", HoldMode.Shared));

        // Holding nothing here, but elsewhere, is no different; holding nothing at all is.
        Assert.Equal(HoldVerdict.Dies, Ask(4, "k", HoldMode.Shared, HoldFlags.HoldsOthers));
        Assert.Equal(HoldVerdict.Waits, Ask(5, "k", HoldMode.Shared));
    }

    [Fact]
    public void Who_waits_behind_others_is_older_than_all_of_them_whatever_their_mode()
    {
        Ask(1, "k", HoldMode.Shared);
        Assert.Equal(HoldVerdict.Waits, Ask(9, "k", HoldMode.Exclusive));
        Ask(5, "five", HoldMode.Shared);

        // It would fit to the holder, but waits for it behind the one that waits.
        Assert.Equal(HoldVerdict.Dies, Ask(5, "k", HoldMode.Shared));
    }

    [Fact]
    public void Of_two_that_want_to_write_what_both_have_read_the_younger_dies()
    {
        Ask(1, "k", HoldMode.Shared);
        Ask(2, "k", HoldMode.Shared);
        Ask(3, "k", HoldMode.Exclusive);
        Assert.Equal(HoldVerdict.Dies, Ask(2, "k", HoldMode.Exclusive));
        Assert.Equal(HoldVerdict.Waits, Ask(1, "k", HoldMode.Exclusive));
        Assert.Equal(HoldVerdict.Dies, Ask(2, "k", HoldMode.Exclusive));
        Release(2);
        Assert.Equal([1], Granted());
        Assert.True(_holds.IsHeldByOther("k"u8, new TransactionId(0, 2)));
        Assert.False(_holds.IsHeldByOther("k"u8, new TransactionId(0, 1)));
        Release(1);
        Assert.Equal([3], Granted());
    }

    [Fact]
    public void The_only_holder_may_write_although_others_wait()
    {
        Ask(1, "k", HoldMode.Shared);
        Ask(2, "k", HoldMode.Exclusive);
        Assert.Equal(HoldVerdict.Granted, Ask(1, "k", HoldMode.Exclusive));
        Assert.Equal(HoldVerdict.Granted, Ask(1, "k", HoldMode.Shared));
        Assert.Equal(1, _holds.Count);
    }

    [Fact]
    public void Asking_again_keeps_the_place_and_asking_for_another_key_gives_it_up()
    {
        Ask(1, "k", HoldMode.Exclusive);
        Assert.Equal(HoldVerdict.Waits, Ask(2, "k", HoldMode.Exclusive));
        Assert.Equal(HoldVerdict.Waits, Ask(3, "k", HoldMode.Exclusive));
        Assert.Equal(HoldVerdict.Waits, Ask(2, "k", HoldMode.Exclusive));
        Assert.Equal(2, _holds.Waiters.Count);
        Assert.Equal(HoldVerdict.Granted, Ask(2, "other", HoldMode.Exclusive));
        Release(1);
        Assert.Equal([3], Granted());
        Assert.True(_holds.TryTakeEnded(out HoldWaiter gone));
        Assert.Equal(new TransactionId(0, 2), gone.Owner.Id);
    }

    [Fact]
    public void Holds_end_with_the_time_of_their_transaction_and_others_follow()
    {
        Ask(1, "k", HoldMode.Exclusive, leftMs: 500);
        Ask(2, "k", HoldMode.Exclusive, leftMs: 5_000);
        Ask(3, "k", HoldMode.Exclusive, leftMs: 400);
        _now += 450;
        _holds.Expire(_now);
        Assert.Empty(Granted());
        Assert.True(_holds.TryTakeEnded(out HoldWaiter gone));
        Assert.Equal(new TransactionId(0, 3), gone.Owner.Id);

        // Asking again does not make it last longer.
        Assert.Equal(HoldVerdict.Granted, Ask(1, "k", HoldMode.Exclusive, leftMs: 500));
        _now += 50;
        _holds.Expire(_now);
        Assert.Equal([2], Granted());
        Assert.Equal(HoldVerdict.Over, Ask(1, "k", HoldMode.Exclusive));
        _now += 5_000;
        _holds.Expire(_now);
        Assert.Equal((0, 0, 0), (_holds.Count, _holds.Keys, _holds.Transactions));
    }

    [Fact]
    public void A_request_that_arrives_after_the_release_is_refused()
    {
        Assert.Equal(0, _holds.Release(new TransactionId(0, 7), isApplied: false));
        Assert.Equal(HoldVerdict.Over, Ask(7, "k", HoldMode.Shared));
        for (ulong i = 0; i < KeyHolds.RememberedMax; i++)
        {
            _holds.Release(new TransactionId(1, i), isApplied: false);
        }

        Assert.Equal(HoldVerdict.Granted, Ask(7, "k", HoldMode.Shared));
    }

    [Fact]
    public void A_key_is_read_after_the_writes_that_were_taken_before_it_was_held()
    {
        _writes = 5;
        Assert.Equal((HoldVerdict.Granted, 5L), AskSince(1));
        _writes = 8;

        // Nobody else could write the key since.
        Ask(2, "k", HoldMode.Shared);
        Assert.Equal((HoldVerdict.Granted, 5L), AskSince(2));
        _holds.Release(new TransactionId(0, 1), isApplied: true);
        Assert.Equal((HoldVerdict.Granted, 5L), AskSince(2));

        // The commit of one that lets go without it may be under way.
        Ask(3, "k", HoldMode.Shared);
        Release(3);
        Assert.Equal((HoldVerdict.Granted, 8L), AskSince(2));
    }

    [Fact]
    public void Places_are_limited_by_key_and_by_transaction()
    {
        Ask(0, "k", HoldMode.Exclusive);
        for (ulong i = 1; i <= KeyHolds.PlacesPerKeyMax; i++)
        {
            Assert.Equal(HoldVerdict.Waits, Ask(i, "k", HoldMode.Exclusive));
        }

        Assert.Equal(HoldVerdict.Full, Ask(5_000, "k", HoldMode.Exclusive));
        for (int i = 1; i < KeyHolds.PlacesPerTransactionMax; i++)
        {
            Assert.Equal(HoldVerdict.Granted, Ask(0, $"k{i}", HoldMode.Shared));
        }

        Assert.Equal(HoldVerdict.Full, Ask(0, "one more", HoldMode.Shared));
        Assert.Equal(HoldVerdict.Granted, Ask(0, "k7", HoldMode.Exclusive));
    }

    [Fact]
    public void Ranges_find_held_keys()
    {
        Ask(1, "b", HoldMode.Shared);
        Assert.True(_holds.AnyHeld("a"u8, "c"u8));
        Assert.True(_holds.AnyHeld([], []));
        Assert.True(_holds.AnyHeld("b"u8, []));
        Assert.False(_holds.AnyHeld("a"u8, "b"u8));
        Assert.False(_holds.AnyHeld("b "u8, []));
        Assert.False(_holds.AnyHeld("c"u8, "a"u8));
    }

    [Theory]
    [InlineData(1)]
    [InlineData(2)]
    [InlineData(3)]
    [InlineData(4)]
    public void Random_transactions_all_end_and_no_two_conflict(int seed)
    {
        for (int i = 0; i < 150; i++)
        {
            new KeyHoldsModel((seed * 1_000) + i).Run();
        }
    }

    private (HoldVerdict Verdict, long Since) AskSince(ulong id)
    {
        HoldVerdict verdict = _holds.Ask(Body(id, HoldMode.Shared), "k"u8, _now, out _, out long since);
        return (verdict, since);
    }

    private HoldVerdict Ask(
        ulong id, string key, HoldMode mode, HoldFlags flags = HoldFlags.None, uint leftMs = 30_000) =>
        _holds.Ask(
            Body(id, mode) with { Flags = flags, LeftMs = leftMs }, Encoding.UTF8.GetBytes(key), _now, out _, out _);

    private static HoldBody Body(ulong id, HoldMode mode) =>
        new(new TransactionId(0, id), (long)id, 30_000, mode, HoldFlags.None);

    private void Release(ulong id) => _holds.Release(new TransactionId(0, id), isApplied: false);

    private List<int> Granted()
    {
        List<int> granted = [];
        while (_holds.TryTakeGranted(out HoldWaiter waiter))
        {
            granted.Add((int)waiter.Owner.Id.Low);
        }

        return granted;
    }
}
