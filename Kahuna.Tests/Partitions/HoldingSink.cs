using Kahuna.Server.Api.Calls;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Wire.Buffers;

namespace Kahuna.Tests.Partitions;

/// <summary>A stream whose requests are counted, and which takes its answers at once. Owned by one test.</summary>
internal sealed class HoldingSink(RequestReservation hold) : ReplySink(8)
{
    public override bool IsClosed => false;

    public override void HoldRequests(long bytes) => hold.Add(bytes);

    public override bool HasRoomToHold(long bytes) => hold.Fits(bytes);

    public override void Deliver(ByteBuffer frame, int count) => frame.Return();
}
