using System.Diagnostics;
using Kahuna.Server.Api;
using Kahuna.Tests.Hosting;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Frames;

namespace Kahuna.Tests.Api;

/// <summary>What clients can make a node keep of their traces.</summary>
public sealed class TraceContextsTests
{
    private readonly SteppedTime _time = new();
    private readonly TraceContexts _traces;

    public TraceContextsTests() => _traces = new TraceContexts(_time, static () => true);

    [Fact]
    public void A_place_is_given_back_once()
    {
        ActivityContext parent = Parent();
        ushort place = _traces.Begin(parent);
        Assert.NotEqual(0, place);
        Assert.True(_traces.TryEnd(place, out ActivityContext ended));
        Assert.Equal(parent, ended);
        Assert.False(_traces.TryEnd(place, out _));
        Assert.Equal(place, _traces.Begin(Parent()));
        Assert.NotEqual(place, _traces.Begin(Parent()));
    }

    [Fact]
    public void A_second_has_a_thousand()
    {
        Assert.Equal(TraceContexts.PerSecondMax, Begin(3 * TraceContexts.PerSecondMax));
        _time.Now += TimeSpan.FromSeconds(1);
        Assert.Equal(TraceContexts.PerSecondMax, Begin(3 * TraceContexts.PerSecondMax));
    }

    [Fact]
    public void Places_end_and_those_of_callers_that_are_gone_come_back()
    {
        int begun = 0;
        for (int second = 0; second < 10; second++)
        {
            begun += Begin(TraceContexts.PerSecondMax);
            _time.Now += TimeSpan.FromSeconds(1);
        }

        Assert.Equal(TraceContexts.PlacesMax, begun);
        Assert.Equal(0, Begin(1));
        _time.Now += TraceContexts.Longest;
        Assert.Equal(TraceContexts.PerSecondMax, Begin(2_000));
    }

    [Fact]
    public void Only_as_many_get_a_trace_of_their_own_as_wanted()
    {
        Assert.Equal(0, _traces.Sample());
        Assert.NotEqual(0, new TraceContexts(_time, static () => true, ratio: 1).Sample());
        Assert.Equal(0, new TraceContexts(_time, static () => false, ratio: 1).Sample());
    }

    [Theory]
    [InlineData(-1)]
    [InlineData(1)]
    [InlineData(TraceFrame.ItemBytes)]
    public void Items_of_another_length_are_malformed(int more)
    {
        StreamTraces stream = new(_traces);
        Assert.False(stream.Take(new byte[(2 * TraceFrame.ItemBytes) + more], 2));
        Assert.False(stream.Any);
    }

    [Fact]
    public void A_stream_keeps_the_traces_of_one_frame()
    {
        StreamTraces stream = new(_traces);
        Assert.False(stream.Take(new byte[(TraceFrame.ItemsMax + 1) * TraceFrame.ItemBytes], TraceFrame.ItemsMax + 1));
        for (uint frame = 0; frame < 4; frame++)
        {
            ByteBuffer items = ByteBuffer.Rent();
            for (uint i = 0; i < TraceFrame.ItemsMax; i++)
            {
                TraceFrame.Append(items, (frame * TraceFrame.ItemsMax) + i, Parent());
            }

            Assert.True(stream.Take(items.Written, TraceFrame.ItemsMax));
            items.Return();
        }

        Assert.NotEqual(0, stream.TraceOf(5));
        Assert.Equal(0, stream.TraceOf(TraceFrame.ItemsMax + 5));
        stream.Clear();
        Assert.False(stream.Any);
        Assert.Equal(0, stream.TraceOf(5));
    }

    private static ActivityContext Parent() => new(
        ActivityTraceId.CreateRandom(), ActivitySpanId.CreateRandom(), ActivityTraceFlags.Recorded);

    private int Begin(int wanted) => Enumerable.Range(0, wanted).Count(_ => _traces.Begin(Parent()) != 0);
}
