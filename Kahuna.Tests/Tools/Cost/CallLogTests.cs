namespace Kahuna.Tests.Tools.Cost;

/// <summary>What is counted of the lines of strace.</summary>
public sealed class CallLogTests
{
    [Fact]
    public void Calls_are_counted_by_thread_and_kind_also_when_another_thread_comes_between()
    {
        string[] lines =
        [
            "7  recvfrom(0x52, 0x7efd7d069e40, 0x8000, 0, 0, 0) = 0x832",
            "7  recvfrom(0x52, 0x7efd3b9fdfd4, 0x1, 0x2, 0, 0) = -1 EAGAIN (Resource temporarily unavailable)",
            "8  futex(0x7efd4404d560, 0x189, 0x400, 0xffffffff <unfinished ...>",
            "7  futex(0x7efd4404d560, 0x81, 0x1, 0, 0, 0) = 0x1",
            "8  <... futex resumed>)              = 0",
            "9  <... epoll_wait resumed>)         = 0x1",
            "7  sendto(0x52, 0x7efd7d069e40, 0x80, 0x4000, 0, 0) = 0x80",
            "7  sendto(0x52, 0x7efd7d069e40, 0x80, 0x4000, 0, 0) = -1 EPIPE (Broken pipe)",
            "7  madvise(0x7efd7d069e40, 0x1000, 0x4) = 0",
            "not a call",
            "7  +++ exited with 0 +++",
        ];
        Dictionary<CallKind, CallCount> counts = CallLog.Count(
            lines, static thread => thread == 7 ? "pool" : "other");
        Assert.Equal(
            new Dictionary<CallKind, CallCount>
            {
                [new("pool", "receive")] = new(1, 0x832),
                [new("pool", "look whether there is more")] = new(1, 0),
                [new("other", "futex wait")] = new(1, 0),
                [new("pool", "futex wake")] = new(1, 0),
                [new("pool", "send")] = new(2, 0x80),
                [new("pool", "madvise")] = new(1, 0),
            },
            counts);

        StringWriter output = new();
        CallCommand.Print(output, "client", counts, 2);
        Assert.StartsWith(
            "  client      pool                          send                             1.00        64\n",
            output.ToString());
    }
}
