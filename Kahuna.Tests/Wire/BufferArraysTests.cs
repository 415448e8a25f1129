using Kahuna.Wire.Buffers;

namespace Kahuna.Tests.Wire;

/// <summary>Which arrays are kept when they are returned.</summary>
public sealed class BufferArraysTests
{
    [Theory]
    [InlineData(BufferArrays.SharedBytesMax + 1)]
    [InlineData(BufferArrays.KeptBytesMax)]
    public void Few_large_arrays_of_each_size_are_kept(int bytes) =>

        // Where there is none of the size, one of the next size is taken.
        Assert.InRange(Kept(bytes), 0, 2 * BufferArrays.KeptPerSize);

    [Fact]
    public void Larger_ones_are_left_to_the_collector() => Assert.Equal(0, Kept(BufferArrays.KeptBytesMax + 1));

    [Fact]
    public void Small_arrays_are_rented_again()
    {
        byte[] small = BufferArrays.Rent(BufferArrays.SharedBytesMax);
        BufferArrays.Return(small);
        Assert.Same(small, BufferArrays.Rent(BufferArrays.SharedBytesMax));
        BufferArrays.Return([]);
    }

    [Fact]
    public void Large_ones_that_lie_idle_can_be_let_go()
    {
        byte[] large = BufferArrays.Rent(BufferArrays.KeptBytesMax);
        BufferArrays.Return(large);
        BufferArrays.ForgetIdle();
        byte[][] rented =
        [
            .. Enumerable.Range(0, 2 * BufferArrays.KeptPerSize)
                .Select(_ => BufferArrays.Rent(BufferArrays.KeptBytesMax)),
        ];
        Assert.DoesNotContain(large, rented, ReferenceEqualityComparer.Instance);
        Array.ForEach(rented, BufferArrays.Return);
    }

    /// <summary>
    /// How many of a hundred arrays that were returned are rented again. Others may rent and return beside it, so that
    /// it may be fewer.
    /// </summary>
    private static int Kept(int bytes)
    {
        byte[][] rented = [.. Enumerable.Range(0, 100).Select(_ => BufferArrays.Rent(bytes))];
        Array.ForEach(rented, BufferArrays.Return);
        HashSet<byte[]> before = new(rented, ReferenceEqualityComparer.Instance);
        return Enumerable.Range(0, 100).Select(_ => BufferArrays.Rent(bytes)).Count(before.Contains);
    }
}
