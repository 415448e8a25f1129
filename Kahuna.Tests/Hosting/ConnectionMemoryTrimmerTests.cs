using Kahuna.Server.Hosting;

namespace Kahuna.Tests.Hosting;

/// <summary>After a flood of connections memory is given back once, when the flood is over.</summary>
public sealed class ConnectionMemoryTrimmerTests
{
    private readonly ConnectionMemoryTrimmer _memory;
    private int _given;

    public ConnectionMemoryTrimmerTests() => _memory = new ConnectionMemoryTrimmer(() => _given++);

    [Fact]
    public void A_flood_that_has_ended_gives_memory_back_once()
    {
        Open(5_000);
        _memory.Check();
        Close(2_000);
        _memory.Check();
        Assert.Equal(0, _given);

        Close(2_990);
        _memory.Check();
        Assert.Equal(0, _given);
        _memory.Check();
        _memory.Check();
        Assert.Equal(1, _given);

        Open(300);
        Close(300);
        _memory.Check();
        _memory.Check();
        Assert.Equal(2, _given);
    }

    [Fact]
    public void Ordinary_coming_and_going_costs_nothing()
    {
        for (int i = 0; i < 1_000; i++)
        {
            Open(100);
            _memory.Check();
            Close(100);
            _memory.Check();
            _memory.Check();
        }

        Assert.Equal(0, _given);
    }

    private void Open(int count)
    {
        for (int i = 0; i < count; i++)
        {
            _memory.Opened();
        }
    }

    private void Close(int count)
    {
        for (int i = 0; i < count; i++)
        {
            _memory.Closed();
        }
    }
}
