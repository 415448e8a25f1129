using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;

namespace Kahuna.Tests.Raft;

/// <summary>
/// Time until a leader is elected after a split vote (Raft §5.2), in ticks of nodes that tick together.
/// </summary>
public sealed class SplitVoteTests
{
    private const int Seeds = 1_000;
    private const int ElectionTicks = 16;

    /// <summary>
    /// The later of the first two voters campaigns again after two quarters of an election timeout and up to half a
    /// quarter.
    /// </summary>
    private const int RetryTicksMax = 9;

    [Theory]
    [InlineData(1)]
    [InlineData(2)]
    [InlineData(3)]
    public void After_a_split_vote_of_two_the_next_attempt_elects_a_leader(int lost)
    {
        int worst = 0;
        for (int seed = 1; seed <= Seeds; seed++)
        {
            Survivors survivors = new((ulong)seed, ElectionTicks, lost);
            survivors.SplitVotes();
            worst = Math.Max(worst, survivors.TicksToLeader());
        }

        Assert.InRange(worst, 1, RetryTicksMax);
    }

    [Theory]
    [InlineData(4)]
    [InlineData(8)]
    [InlineData(10)]
    public void Short_timeouts_elect_a_leader_as_well(int electionTicks)
    {
        for (int seed = 1; seed <= Seeds; seed++)
        {
            Survivors survivors = new((ulong)seed, electionTicks, lost: 1);
            survivors.SplitVotes();
            Assert.InRange(survivors.TicksToLeader(), 1, electionTicks);
        }
    }

    [Fact]
    public void A_second_split_in_a_row_waits_for_half_a_timeout_and_a_third_for_a_whole_one()
    {
        HashSet<int> waits = [];
        for (int seed = 1; seed <= Seeds; seed++)
        {
            Survivors survivors = new((ulong)seed, ElectionTicks, lost: 1);
            survivors.SplitVotes();
            survivors.SplitVotes();
            int second = survivors.TicksToCampaign(0);
            Assert.InRange(second, ElectionTicks / 2, ElectionTicks - 1);
            waits.Add(second);
            survivors.SplitVotes();
            Assert.InRange(survivors.TicksToCampaign(0), ElectionTicks, (2 * ElectionTicks) - 1);
        }

        Assert.Equal(ElectionTicks / 2, waits.Count);
    }

    [Fact]
    public void A_leader_makes_the_next_split_vote_a_first_one_again()
    {
        Survivors survivors = new(1, ElectionTicks, lost: 1);
        for (int i = 0; i < 3; i++)
        {
            survivors.SplitVotes();
        }

        survivors.HearLeader(term: 10);
        survivors.SplitVotes();
        Assert.InRange(survivors.TicksToLeader(), 1, RetryTicksMax);
    }

    [Fact]
    public void A_reluctant_node_does_not_campaign_again_early()
    {
        for (int seed = 1; seed <= Seeds; seed++)
        {
            Survivors survivors = new((ulong)seed, ElectionTicks, lost: 1);
            survivors.SetReluctant(0);
            survivors.SplitVotes();
            Assert.InRange(survivors.TicksToCampaign(0), ElectionTicks, int.MaxValue);
        }
    }

    [Fact]
    public void Followers_draw_another_timeout_for_every_leader()
    {
        HashSet<int> waits = [];
        for (int leaders = 1; leaders <= 20; leaders++)
        {
            Survivors survivors = new(7, ElectionTicks, lost: 3);
            for (int i = 1; i <= leaders; i++)
            {
                survivors.HearLeader(term: i);
            }

            waits.Add(survivors.TicksToCampaign(0));
        }

        Assert.InRange(waits.Count, 5, ElectionTicks);
    }

    /// <summary>
    /// The two remaining voters of three. They tick together, and their messages arrive before the next tick. Owned by
    /// one test.
    /// </summary>
    private sealed class Survivors
    {
        private readonly RaftNode[] _nodes;
        private readonly NodeId _lost;
        private readonly List<Packet> _network = [];

        public Survivors(ulong seed, int electionTicks, int lost)
        {
            NodeId[] ids = [new(1), new(2), new(3)];
            _lost = ids[lost - 1];
            _nodes = [.. ids.Where(id => id != _lost).Select(id => new RaftNode(new RaftConfig
            {
                Self = id,
                Group = new GroupId(1),
                Voters = ids,
                ElectionTicks = electionTicks,
                Seed = (seed << 8) + id.Value,
            }))];
            foreach (RaftNode node in _nodes)
            {
                node.Send = packet => _network.Add(packet);
            }
        }

        private bool HasLeader => _nodes.Any(node => node.Core.Role == RaftRole.Leader);

        /// <summary>Both campaign at once, and each votes for itself.</summary>
        public void SplitVotes()
        {
            foreach (RaftNode node in _nodes)
            {
                node.Core.Campaign();
            }

            Deliver();
            Assert.All(_nodes, node => Assert.Equal(RaftRole.Candidate, node.Core.Role));
        }

        public int TicksToLeader()
        {
            int ticks = 0;
            while (!HasLeader)
            {
                Assert.InRange(++ticks, 1, 1_000);
                foreach (RaftNode node in _nodes)
                {
                    node.Core.Tick();
                }

                Deliver();
            }

            return ticks;
        }

        /// <summary>
        /// Ticks of one node until it asks for votes again, while the other one's clock does not advance and no message
        /// arrives.
        /// </summary>
        public int TicksToCampaign(int number)
        {
            RaftNode node = _nodes[number];
            int ticks = 0;
            for (_network.Clear(); _network.Count == 0; ticks++)
            {
                Assert.InRange(ticks, 0, 1_000);
                node.Core.Tick();
                Carry(node);
            }

            Assert.Contains(_network, static packet => packet.Message.Kind == RaftMessageKind.PreVote);
            _network.Clear();
            return ticks;
        }

        public void SetReluctant(int number) => _nodes[number].Core.IsReluctant = true;

        /// <summary>The third voter says once that it leads.</summary>
        public void HearLeader(int term)
        {
            foreach (RaftNode node in _nodes)
            {
                RaftMessage heartbeat = new()
                {
                    Kind = RaftMessageKind.Heartbeat,
                    From = _lost,
                    To = node.Id,
                    Term = new Term((ulong)term),
                };
                node.Core.Step(heartbeat, default);
                Carry(node);
            }
        }

        /// <summary>
        /// Delivers all messages in rounds: a reply arrives after all messages that were in flight with its request.
        /// </summary>
        private void Deliver()
        {
            Array.ForEach(_nodes, Carry);
            while (_network.Count > 0)
            {
                Packet[] round = [.. _network];
                _network.Clear();
                foreach (Packet packet in round)
                {
                    if (packet.Message.To != _lost)
                    {
                        _nodes.Single(node => node.Id == packet.Message.To).Receive(packet, senderLife: 0);
                    }
                }

                Array.ForEach(_nodes, Carry);
            }
        }

        private static void Carry(RaftNode node)
        {
            node.Drain();
            while (node.PendingWrites > 0)
            {
                node.Persist();
                node.Drain();
            }
        }
    }
}
