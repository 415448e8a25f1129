using System.Text;
using Kahuna.Server.Api.Watches;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Watches;

namespace Kahuna.Tests.Api.Watches;

/// <summary>What an idle watch costs a node.</summary>
[Collection(MeasuredHeapCollection.Name)]
public sealed class WatchReaderMemoryTests
{
    [Fact]
    public void Many_idle_watches_take_little_memory()
    {
        const int Watches = 100_000;
        LoggedChanges changes = new(partitions: 1);
        WatchDispatcher dispatcher = new(changes.Logs, static _ => { });
        WatchNews news = new(dispatcher, static () => { });
        long before = GC.GetTotalMemory(forceFullCollection: true);
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
        long bytes = (GC.GetTotalMemory(forceFullCollection: true) - before) / Watches;
        Assert.True(bytes is > 100 and < 450, $"{bytes} bytes for each watch");
        GC.KeepAlive(dispatcher);
    }
}
