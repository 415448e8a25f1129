using System.Text;
using Kahuna.Server.Primitives;
using Kahuna.Server.State;
using Kahuna.Server.State.Rows;
using Kahuna.Server.State.Slots;
using Kahuna.Tests.State.Locks;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Routing;

namespace Kahuna.Tests.State.Slots;

/// <summary>A group refuses the keys of slots that it has given away, until it takes them back.</summary>
public sealed class ReleasedSlotsTests
{
    private StateMachine _state = new(new StateLimits());

    [Fact]
    public void Nothing_is_refused_and_no_row_is_kept_before_the_first_release()
    {
        Assert.Equal(OutcomeStatus.Applied, Set("moved/k").Status);
        Assert.Equal(OutcomeStatus.Applied, Change(CommandKind.AdoptSlots, 5, "moved/k").Status);
        Assert.Equal(1, _state.Counts.Keys);
        Assert.Equal(0UL, _state.Slots.ReleasedIn(KeyRouting.Slot("moved/k"u8)));
    }

    [Fact]
    public void Writes_reads_locks_and_sequences_of_a_released_slot_are_refused()
    {
        Assert.Equal(OutcomeStatus.Applied, Change(CommandKind.ReleaseSlots, 3, "moved/k").Status);
        foreach (byte[] command in OfAllKinds("moved/k"))
        {
            Answer refused = Do(command);
            Assert.Equal((OutcomeStatus.SlotMoved, 4L), (refused.Status, refused.Revision));
        }

        Assert.Equal(0, _state.Counts.Keys);
        Assert.False(_state.Slots.HoldsReleased());
        Assert.All(
            OfAllKinds("other/k").SkipLast(1),
            command => Assert.NotEqual(OutcomeStatus.SlotMoved, Do(command).Status));
        Assert.NotEqual(OutcomeStatus.SlotMoved, Do(List("moved/")).Status);
        Assert.Equal(_state.RecomputeDigest(), _state.Digest);
    }

    [Fact]
    public void A_transaction_with_any_key_of_a_released_slot_is_refused()
    {
        Assert.Equal(OutcomeStatus.Applied, Change(CommandKind.ReleaseSlots, 3, "moved/k").Status);
        byte[] transaction = Transaction("other/k", "moved/k");
        Answer refused = Do(transaction);
        Assert.Equal((OutcomeStatus.SlotMoved, 4L), (refused.Status, refused.Revision));
        Assert.Equal(0, _state.Counts.Keys);
        Assert.Equal(OutcomeStatus.Applied, Do(Transaction("other/k", "other/l")).Status);
    }

    [Fact]
    public void A_range_that_was_divided_by_an_older_map_is_refused()
    {
        Assert.Equal(OutcomeStatus.Applied, Change(CommandKind.ReleaseSlots, 3, "moved/k").Status);
        TestCommand range = TestItems.None("a", "z");
        Answer refused = Do(WithRange(range with { ComparedRevision = 3 }));
        Assert.Equal((OutcomeStatus.SlotMoved, 4L), (refused.Status, refused.Revision));
        Assert.Equal(OutcomeStatus.Applied, Do(WithRange(range with { ComparedRevision = 4 })).Status);
    }

    [Fact]
    public void No_slot_is_released_while_a_range_is_held()
    {
        Assert.Equal(OutcomeStatus.Applied, Change(CommandKind.ReleaseSlots, 2, "before/k").Status);
        TestCommand range = TestItems.None("a", "z") with { ComparedRevision = 3 };
        ByteBuffer body = ByteBuffer.Rent();
        PrepareBody.WriteHeader(body, new TransactionId(1, 2), 5_000, PrepareFlags.None, "z/anchor"u8, 0);
        TransactionBody.WriteHeader(body, 1, 0, 0, ranges: 1);
        TestItems.Append(body, [range]);
        Assert.Equal(
            OutcomeStatus.Applied,
            Do(new TestCommand(CommandKind.TransactionPrepare, "other/k") { Binary = body.Written.ToArray() }.Encode())
                .Status);
        Assert.Equal(OutcomeStatus.ConditionFailed, Change(CommandKind.ReleaseSlots, 3, "moved/k").Status);
        Assert.False(_state.Slots.HoldsReleased());
        byte[] id = new byte[TransactionId.Bytes];
        new TransactionId(1, 2).Write(id);
        Assert.Equal(OutcomeStatus.Applied, Do(new TestCommand(CommandKind.TransactionFinish, "other/k")
        {
            Binary = id,
            Flags = CommandFlags.Number,
            Number = (long)TransactionDecision.Then,
        }.Encode()).Status);
        Assert.Equal(OutcomeStatus.Applied, Change(CommandKind.ReleaseSlots, 3, "moved/k").Status);
    }

    [Fact]
    public void Followers_refuse_what_the_leader_refuses()
    {
        StateMachine leader = _state;
        StateMachine follower = new(new StateLimits());
        byte[][] log = [Encode(CommandKind.ReleaseSlots, 1, "moved/k"), Numbered("moved/k", 7), Numbered("a", 8)];
        foreach (byte[] command in log)
        {
            Do(command);
            _state = follower;
            Assert.True(Command.TryRead(command, out Command decoded));
            follower.Apply(in decoded, outcome: null);
            _state = leader;
        }

        Assert.Equal(leader.Digest, follower.Digest);
        Assert.Equal(1, follower.Counts.Keys);
    }

    [Fact]
    public void Only_a_later_map_gives_a_slot_back()
    {
        Change(CommandKind.ReleaseSlots, 3, "moved/k");
        Change(CommandKind.AdoptSlots, 3, "moved/k");
        Assert.Equal(OutcomeStatus.SlotMoved, Set("moved/k").Status);
        Change(CommandKind.AdoptSlots, 5, "moved/k");
        Assert.Equal(OutcomeStatus.NotFound, Do(Exists("moved/k")).Status);
        Change(CommandKind.ReleaseSlots, 3, "moved/k");
        Assert.Equal(0UL, _state.Slots.ReleasedIn(KeyRouting.Slot("moved/k"u8)));
        Change(CommandKind.ReleaseSlots, 5, "moved/k");
        Change(CommandKind.AdoptSlots, 5, "moved/k");
        Assert.Equal((OutcomeStatus.SlotMoved, 6L), (Set("moved/k").Status, Set("moved/k").Revision));
    }

    [Theory]
    [InlineData("key")]
    [InlineData("deleted key")]
    [InlineData("lock")]
    [InlineData("sequence")]
    public void A_slot_that_holds_something_is_kept(string what)
    {
        switch (what)
        {
            case "lock":
                Do(LockCommands.Acquire("moved/l", "ann"));
                break;
            case "sequence":
                Do(CreateSequence("moved/s"));
                break;
            default:
                Set("moved/k");
                break;
        }

        if (what == "deleted key")
        {
            Do(new TestCommand(CommandKind.Delete, "moved/k").Encode());
        }

        ulong digest = _state.Digest;
        Assert.Equal(OutcomeStatus.ConditionFailed, Change(CommandKind.ReleaseSlots, 1, "moved/k").Status);
        Assert.Equal(digest, _state.Digest);
        Assert.NotEqual(OutcomeStatus.SlotMoved, Set("moved/k").Status);
    }

    [Fact]
    public void A_refused_number_was_not_used_and_a_used_one_keeps_its_outcome()
    {
        byte[] before = new TestCommand(CommandKind.Delete, "moved/k")
        {
            Flags = CommandFlags.Session | CommandFlags.Opening,
            Call = (9, 1, 0),
        }.Encode();
        Assert.Equal(OutcomeStatus.NotFound, Do(before).Status);
        Change(CommandKind.ReleaseSlots, 1, "moved/k");
        Assert.Equal(OutcomeStatus.NotFound, Do(before).Status);
        byte[] after = Numbered("moved/k", 9, number: 2);
        Assert.Equal(OutcomeStatus.SlotMoved, Do(after).Status);
        Change(CommandKind.AdoptSlots, 3, "moved/k");
        Assert.Equal(OutcomeStatus.Applied, Do(after).Status);
        Assert.Equal(1, _state.Sessions.Repeats);
    }

    [Fact]
    public void A_session_that_is_not_known_is_not_opened_for_a_released_slot()
    {
        Change(CommandKind.ReleaseSlots, 1, "moved/k");
        Assert.Equal(OutcomeStatus.SlotMoved, Do(Numbered("moved/k", 9)).Status);
        Assert.Equal(OutcomeStatus.SlotMoved, Do(Numbered("moved/k", 9, isOpening: false)).Status);
        Assert.Equal(0, _state.Sessions.Count);
    }

    [Fact]
    public void A_loaded_state_refuses_the_same()
    {
        Change(CommandKind.ReleaseSlots, 3, "moved/k");
        Change(CommandKind.ReleaseSlots, 4, "gone/k");
        Change(CommandKind.AdoptSlots, 5, "gone/k");
        ulong digest = _state.Digest;
        _state = Reload();
        Assert.Equal(digest, _state.Digest);
        Assert.Equal((OutcomeStatus.SlotMoved, 4L), (Set("moved/k").Status, Set("moved/k").Revision));
        Change(CommandKind.ReleaseSlots, 4, "gone/k");
        Assert.Equal(OutcomeStatus.Applied, Set("gone/k").Status);
        Change(CommandKind.AdoptSlots, 9, "moved/k");
        _state = Reload();
        Assert.Equal(OutcomeStatus.Applied, Set("moved/k").Status);
    }

    [Fact]
    public void An_epoch_begins_without_the_slots_of_others()
    {
        SlotMap map = SlotMap.Initial(2);
        int slot = KeyRouting.Slot("moved/k"u8);
        int owner = map[slot];
        SlotMap moved = map.Move([new SlotRange((ushort)slot, (ushort)slot, (ushort)(1 - owner))])!;
        StateLimits limits = new StateLimits().InEpoch(new Epoch(2)) with { SlotsBefore = moved, Partition = owner };
        _state = new StateMachine(limits);
        Assert.Equal((OutcomeStatus.SlotMoved, 2L), (Set("moved/k").Status, Set("moved/k").Revision));
        Change(CommandKind.AdoptSlots, 3, "moved/k");
        Assert.Equal(OutcomeStatus.Applied, Set("moved/k").Status);
        _state = new StateMachine(limits with { Partition = 1 - owner });
        Assert.Equal(OutcomeStatus.Applied, Set("moved/k").Status);
        Assert.Equal(_state.RecomputeDigest(), _state.Digest);
    }

    [Fact]
    public void Random_moves_keep_the_digest_and_survive_a_load()
    {
        Random random = new(79);
        for (int i = 0; i < 200; i++)
        {
            int first = random.Next(KeyRouting.Slots);
            SlotRange[] ranges =
                [new((ushort)first, (ushort)random.Next(first, Math.Min(KeyRouting.Slots, first + 500)), 0)];
            Do(Encode(
                random.Next(2) == 0 ? CommandKind.ReleaseSlots : CommandKind.AdoptSlots,
                (ulong)random.Next(1, 50),
                ranges));
            Assert.Equal(_state.RecomputeDigest(), _state.Digest);
            if (i % 20 == 0)
            {
                StateMachine loaded = Reload();
                Assert.All(
                    Enumerable.Range(0, KeyRouting.Slots),
                    slot => Assert.Equal(_state.Slots.ReleasedIn(slot), loaded.Slots.ReleasedIn(slot)));
            }
        }
    }

    [Theory]
    [InlineData("")]
    [InlineData("0100000000000000")]
    [InlineData("0000000000000000" + "00000000")]
    [InlineData("0100000000000000" + "0000")]
    [InlineData("0100000000000000" + "05000400")]
    [InlineData("0100000000000000" + "00000010")]
    public void A_malformed_command_is_none(string value)
    {
        Command command = new() { Kind = CommandKind.ReleaseSlots, Value = Convert.FromHexString(value) };
        Assert.Null(SlotCommand.Read(in command));
    }

    private Answer Set(string key) => Do(new TestCommand(CommandKind.Set, key, "v").Encode());

    private static byte[] Exists(string key) => new TestCommand(CommandKind.Exists, key).Encode();

    private static byte[] Numbered(string key, ulong session, ulong number = 1, bool isOpening = true) =>
        new TestCommand(CommandKind.Set, key, "v")
        {
            Flags = CommandFlags.Session | (isOpening ? CommandFlags.Opening : 0),
            Call = (session, number, (ushort)(number - 1)),
        }.Encode();

    private static byte[] CreateSequence(string name)
    {
        byte[] form = new byte[SequenceBody.Bytes];
        new SequenceBody { Increment = 1, Max = 9 }.Write(form);
        return LockCommands.EncodeUnchecked(new Command
        {
            Kind = CommandKind.SequenceCreate,
            Key = Encoding.UTF8.GetBytes(name),
            Value = form,
        });
    }

    private static byte[] WithRange(TestCommand range) =>
        TestItems.Transaction("other/k", [range], [new TestCommand(CommandKind.Exists, "other/k")]).Encode();

    private static byte[] Transaction(params string[] keys)
    {
        ByteBuffer body = ByteBuffer.Rent();
        TransactionBody.WriteHeader(body, 0, keys.Length, 0);
        foreach (string key in keys)
        {
            CommandList.Append(body, new Command
            {
                Kind = CommandKind.Set,
                Durability = Durability.Persistent,
                Key = Encoding.UTF8.GetBytes(key),
            });
        }

        ByteBuffer bytes = ByteBuffer.Rent();
        new Command
        {
            Kind = CommandKind.Transaction,
            Durability = Durability.Persistent,
            Key = Encoding.UTF8.GetBytes(keys[0]),
            Value = body.Written,
        }.Write(bytes);
        return bytes.Written.ToArray();
    }

    private static byte[] List(string prefix) => LockCommands.EncodeUnchecked(new Command
    {
        Kind = CommandKind.LockList,
        Flags = CommandFlags.Number | CommandFlags.AtRevision,
        Key = Encoding.UTF8.GetBytes(prefix),
    });

    private static IEnumerable<byte[]> OfAllKinds(string key)
    {
        foreach (CommandKind kind in new[] { CommandKind.Set, CommandKind.Delete, CommandKind.Get, CommandKind.Exists })
        {
            yield return new TestCommand(kind, key, kind == CommandKind.Set ? "v" : null).Encode();
        }

        yield return new TestCommand(CommandKind.Extend, key) { Flags = CommandFlags.Ttl, TtlMs = 9 }.Encode();
        yield return new TestCommand(CommandKind.Increment, key) { Flags = CommandFlags.Number, Number = 1 }.Encode();
        yield return CreateSequence(key);
        yield return new TestCommand(CommandKind.SequenceNext, key)
        {
            Flags = CommandFlags.Number,
            Number = 1,
        }.Encode();
        yield return new TestCommand(CommandKind.SequenceGet, key).Encode();
        yield return LockCommands.Acquire(key, "ann");
        yield return LockCommands.Release(key, "ann", 1);
        yield return new TestCommand(CommandKind.LockGet, key).Encode();
        yield return LockCommands.Await(key, "ann", 1);
        yield return LockCommands.Observe(key, 0, 1_000);
    }

    private Answer Change(CommandKind kind, ulong version, string key) => Do(Encode(kind, version, key));

    private static byte[] Encode(CommandKind kind, ulong version, string key)
    {
        ushort slot = (ushort)KeyRouting.Slot(Encoding.UTF8.GetBytes(key));
        return Encode(kind, version, [new SlotRange(slot, slot, 0)]);
    }

    private static byte[] Encode(CommandKind kind, ulong version, SlotRange[] ranges)
    {
        ByteBuffer bytes = ByteBuffer.Rent();
        new SlotCommand(kind, version) { Ranges = ranges }.Write(bytes, Durability.Persistent);
        byte[] encoded = bytes.Written.ToArray();
        bytes.Return();
        return encoded;
    }

    private Answer Do(byte[] encoded)
    {
        Assert.True(Command.TryRead(encoded, out Command command));
        ByteBuffer outcome = ByteBuffer.Rent();
        if (command.IsRead)
        {
            Assert.True(_state.Read(in command, _state.Time, outcome));
        }
        else
        {
            _state.Apply(in command, outcome);
        }

        Answer answer = Answer.Read(outcome.Written);
        outcome.Return();
        return answer;
    }

    private StateMachine Reload()
    {
        using StateView view = _state.ViewAll();
        StateLoader loader = new(new StateLimits(), view.Summary);
        foreach (byte[] record in StateRecords.TakeAll(view))
        {
            loader.Add(record);
        }

        return loader.Finish();
    }
}
