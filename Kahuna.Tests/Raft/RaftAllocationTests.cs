using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Wire.Buffers;

namespace Kahuna.Tests.Raft;

/// <summary>In steady state a proposal allocates nothing on leader and followers, reads and ticks included.</summary>
public sealed class RaftAllocationTests
{
    private readonly RaftCore[] _cores;
    private readonly byte[] _payload = new byte[300];
    private readonly (LogIndex Index, Term Term)[] _persisted = new (LogIndex, Term)[4];
    private readonly RaftMessage[] _mail = new RaftMessage[64];
    private readonly ByteBuffer _entries = ByteBuffer.Rent(1 << 20);
    private readonly (int Start, int Length)[] _ranges = new (int, int)[64];
    private int _mailCount;

    public RaftAllocationTests()
    {
        NodeId[] ids = [new NodeId(1), new NodeId(2), new NodeId(3)];
        _cores = [.. ids.Select(id => new RaftCore(
            new RaftConfig
            {
                Self = id,
                Group = new GroupId(1),
                Voters = ids,
                Seed = id.Value,
                Limits = new RaftLimits { CacheBytes = 300_000 },
            },
            new RaftStart(default, [], default, default)))];
    }

    [Fact]
    public void Steady_state_allocates_nothing()
    {
        _cores[0].Campaign();
        Run(20);
        Assert.Equal(RaftRole.Leader, _cores[0].Role);
        Turns(4000);

        // Another thread cannot disturb the count: it is this thread's. A background tier-up of the code may add a few
        // bytes once.
        long least = long.MaxValue;
        for (int attempt = 0; attempt < 3 && least > 0; attempt++)
        {
            long before = GC.GetAllocatedBytesForCurrentThread();
            Turns(2000);
            least = Math.Min(least, GC.GetAllocatedBytesForCurrentThread() - before);
        }

        Assert.Equal(0, least);
        Assert.True(_cores[0].CommitIndex.Value > 20_000);
        Assert.True(_cores[2].CommitIndex.Value > 20_000);
    }

    private void Turns(int count)
    {
        for (int i = 0; i < count; i++)
        {
            for (int entry = 0; entry < 4; entry++)
            {
                if (!_cores[0].TryPropose(EntryKind.Commands, _payload, out _))
                {
                    throw new InvalidOperationException("not leader");
                }
            }

            _cores[0].TryRead(out _);
            if (i % 8 == 0)
            {
                foreach (RaftCore core in _cores)
                {
                    core.Tick();
                }
            }

            Run(3);
        }
    }

    private void Run(int rounds)
    {
        for (int round = 0; round < rounds; round++)
        {
            for (int i = 0; i < _cores.Length; i++)
            {
                Turn(i);
            }

            Deliver();
        }
    }

    private void Turn(int node)
    {
        RaftCore core = _cores[node];
        if (!core.PrepareReady())
        {
            return;
        }

        (LogIndex first, LogIndex last) = core.TakeReady().Unpersisted;
        if (first <= last)
        {
            core.Payload(last, out Term term, out _);
            _persisted[node] = (last, term);
        }

        foreach (ref readonly OutgoingMessage outgoing in core.TakeReady().Messages)
        {
            int start = _entries.Length;
            if (outgoing.Message.EntryCount > 0)
            {
                core.CopyEntries(outgoing.Message.Index.Next(), outgoing.Message.EntryCount, _entries);
            }

            _mail[_mailCount] = outgoing.Message;
            _ranges[_mailCount++] = (start, _entries.Length - start);
        }

        core.Advance();
        core.Persisted(_persisted[node].Index, _persisted[node].Term);
    }

    private void Deliver()
    {
        for (int i = 0; i < _mailCount; i++)
        {
            (int start, int length) = _ranges[i];
            _cores[_mail[i].To.Value - 1].Step(_mail[i], _entries.Written.Slice(start, length));
        }

        _mailCount = 0;
        _entries.Length = 0;
    }
}
