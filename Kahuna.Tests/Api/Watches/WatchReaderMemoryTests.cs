using System.Text;
using Kahuna.Server.Api.Watches;
using Kahuna.Server.Primitives;
using Kahuna.Tests.Tools;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Watches;

namespace Kahuna.Tests.Api.Watches;

/// <summary>What an idle watch costs a node.</summary>
public sealed class WatchReaderMemoryTests
{
    internal const string Content = "watch-readers";

    private const int Watches = 100_000;

    [Fact]
    public void Many_idle_watches_take_little_memory()
    {
        long bytes = HeapCommand.InOwnProcess(Content) / Watches;
        Assert.True(bytes is > 100 and < 450, $"{bytes} bytes for each watch");
    }

    internal static long Hold()
    {
        LoggedChanges changes = new(partitions: 1);
        WatchDispatcher dispatcher = new(changes.Logs, static _ => { });
        WatchNews news = new(dispatcher, static () => { });
        long before = HeapCommand.Live();
        using WatchReader reader = new(changes.Logs, dispatch: news);
        for (uint id = 1; id <= Watches; id++)
        {
            Assert.Null(reader.Take(new WatchRequest
            {
                Operation = WatchOperation.Begin,
                Durability = Durability.Persistent,
                Scope = WatchScope.Prefix,
                Id = id,
                Points = [],
                Name = Encoding.UTF8.GetBytes($"services/{id:000000}/"),
            }));
        }

        ByteBuffer frame = ByteBuffer.Rent();
        while (reader.Fill(frame, new NodeTime(1)) != WatchFill.Nothing)
        {
            frame.Length = 0;
        }

        frame.Return();
        long held = HeapCommand.Live() - before;
        GC.KeepAlive(dispatcher);
        return held;
    }
}
