using Kahuna.Client.Connection;
using Kahuna.Client.Outcomes;

namespace Kahuna.Tests.Client;

public sealed class RequestSlotsTests
{
    private static readonly OperationRef s_one = Operation<SetResult>.Rent().Reference;
    private static readonly OperationRef s_other = Operation<GetResult>.Rent().Reference;

    [Fact]
    public void A_number_is_never_zero_and_finds_its_operation_until_it_is_released()
    {
        RequestSlots slots = new(1000);
        uint[] numbers = [.. Enumerable.Range(0, 1000).Select(i => slots.Take(s_one, i))];
        Assert.False(slots.HasRoom);
        Assert.DoesNotContain(0u, numbers);
        Assert.Equal(1000, numbers.Distinct().Count());
        Assert.True(slots.TryFind(numbers[7], out OperationRef found, out long frame));
        Assert.Equal((s_one, 7), (found, frame));
        Assert.True(slots.TryRelease(numbers[7], out found));
        Assert.Equal(s_one, found);
        Assert.False(slots.TryRelease(numbers[7], out _));
        Assert.Equal(999, slots.Count);
    }

    [Fact]
    public void A_place_that_is_used_again_has_another_number()
    {
        RequestSlots slots = new(1);
        uint before = 0;
        for (int i = 0; i < 600_000; i++)
        {
            uint number = slots.Take(i % 2 == 0 ? s_one : s_other, i);
            Assert.NotEqual(0u, number);
            Assert.NotEqual(before, number);
            Assert.False(slots.TryFind(before, out _, out _));
            Assert.True(slots.TryRelease(number, out OperationRef found));
            Assert.Equal(i % 2 == 0 ? s_one : s_other, found);
            before = number;
        }
    }

    [Fact]
    public void Numbers_from_nowhere_are_not_found()
    {
        RequestSlots slots = new(4);
        slots.Take(s_one, 0);
        foreach (uint number in new uint[] { 0, 1, 0x3FFF, 0x4001, 0x8000, uint.MaxValue })
        {
            Assert.False(slots.TryFind(number, out _, out _));
        }
    }

    [Fact]
    public void Steps_through_what_is_in_use_also_while_places_are_released()
    {
        RequestSlots slots = new(8);
        uint[] numbers = [.. Enumerable.Range(0, 5).Select(i => slots.Take(s_one, i))];
        slots.TryRelease(numbers[2], out _);
        List<uint> seen = [];
        int place = -1;
        while (slots.Next(ref place, out uint number, out _, out _))
        {
            seen.Add(number);
            slots.TryRelease(number, out _);
        }

        Assert.Equal([numbers[0], numbers[1], numbers[3], numbers[4]], seen);
        Assert.Equal(0, slots.Count);
    }
}
