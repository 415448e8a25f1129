using System.Buffers.Binary;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Partitions;

/// <summary>A client that takes its answers only when the test says so. Owned by one test.</summary>
internal sealed class SlowSink(ReplyRoom room) : ReplySink(8, room)
{
    private readonly Queue<int> _frames = new();

    /// <summary>Numbers and statuses of the answers, in the order in which they were delivered.</summary>
    public List<(uint Number, OutcomeStatus Status)> Answers { get; } = [];

    /// <summary>Its client is gone.</summary>
    public bool IsGone { get; set; }

    public override bool IsClosed => IsGone;

    /// <summary>The most that waited at a time.</summary>
    public long WaitedMax { get; private set; }

    public override void Deliver(ByteBuffer frame, int count)
    {
        Frame.End(frame, count);
        ReadOnlySpan<byte> rest = frame.Written[(Frame.PrefixBytes + Frame.HeaderBytes)..];
        for (int i = 0; i < count; i++)
        {
            int length = BinaryPrimitives.ReadInt32LittleEndian(rest[4..]);
            Answers.Add((BinaryPrimitives.ReadUInt32LittleEndian(rest), (OutcomeStatus)rest[Frame.ReplyHeaderBytes]));
            rest = rest[(Frame.ReplyHeaderBytes + length)..];
        }

        Assert.True(rest.IsEmpty);
        Waits(frame.Length);
        _frames.Enqueue(frame.Length);
        WaitedMax = Math.Max(WaitedMax, WaitingBytes);
        frame.Return();
    }

    /// <summary>Takes a frame; false when none waits.</summary>
    public bool Take()
    {
        if (!_frames.TryDequeue(out int bytes))
        {
            return false;
        }

        Left(bytes);
        return true;
    }

    /// <summary>The client goes away with everything that waited.</summary>
    public void Go()
    {
        IsGone = true;
        int bytes = _frames.Sum();
        _frames.Clear();
        Left(bytes);
    }
}
