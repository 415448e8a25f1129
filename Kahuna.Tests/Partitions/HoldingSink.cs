using Kahuna.Client.Wire.Buffers;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Partitions;

namespace Kahuna.Tests.Partitions;

/// <summary>A stream whose requests are counted, and which takes its answers at once. Owned by one test.</summary>
internal sealed class HoldingSink(RequestHold hold) : ReplySink(8)
{
    public override bool IsClosed => false;

    public override void HoldRequests(long bytes) => hold.Add(bytes);

    public override bool HasRoomToHold(long bytes) => hold.HasRoom(bytes);

    public override void Deliver(ByteBuffer frame, int count) => frame.Return();
}
