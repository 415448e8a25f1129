using System.Text;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;
using static Kahuna.Tests.State.TestItems;

namespace Kahuna.Tests.State;

/// <summary>A state and a follower of it, with the commands of transactions over several partitions.</summary>
public abstract class TwoPhaseTests
{
    private protected static readonly TransactionId Id = new(1, 2);

    private protected StateDriver State { get; set; } = new();

    private protected StateDriver Follower { get; set; } = new();

    private protected Answer Set(string key, string value, long ttlMs = 0) => Do(Write(key, value) with
    {
        Flags = ttlMs > 0 ? CommandFlags.Ttl : CommandFlags.None,
        TtlMs = ttlMs,
    });

    /// <summary>Whose quota the next writes are charged to.</summary>
    private protected ushort Account { get; set; }

    private protected string? Get(string key) => State.Get(key).Value;

    private protected Answer Prepare(
        TestCommand[] conditions,
        TestCommand[] then,
        TestCommand[]? @else = null,
        PrepareFlags flags = PrepareFlags.None,
        bool anchor = false,
        TransactionId? id = null,
        string? anchorKey = null)
    {
        string key = conditions.Length > 0 && conditions[0].Key.Length > 0 ? conditions[0].Key
            : then.Length > 0 ? then[0].Key
            : "a/x";
        anchorKey ??= anchor ? key : "z/anchor";
        ByteBuffer body = ByteBuffer.Rent();
        PrepareBody.WriteHeader(
            body,
            id ?? Id,
            5_000,
            flags | (anchor ? PrepareFlags.Anchor : 0),
            Encoding.UTF8.GetBytes(anchorKey),
            anchor ? 2 : 0);
        if (anchor)
        {
            PrepareBody.WriteParticipant(body, Durability.Persistent, Encoding.UTF8.GetBytes(key));
            PrepareBody.WriteParticipant(body, Durability.Ephemeral, "e/x"u8);
        }

        WriteHeader(body, conditions, then.Length, @else?.Length ?? 0);
        Append(body, [.. conditions, .. then, .. @else ?? []]);
        return Do(new TestCommand(CommandKind.TransactionPrepare, key) { Binary = body.Written.ToArray() });
    }

    private protected Answer Decide(TransactionDecision decision, TransactionId? id = null) =>
        Do(WithId(CommandKind.TransactionDecide, decision, id));

    private protected Answer Finish(TransactionDecision decision, TransactionId? id = null) =>
        Do(WithId(CommandKind.TransactionFinish, decision, id));

    private protected Answer Forget() => Do(WithId(CommandKind.TransactionForget, TransactionDecision.Pending, null));

    private protected Answer Forget(TransactionId[] ids)
    {
        byte[] bytes = new byte[ids.Length * TransactionId.Bytes];
        for (int i = 0; i < ids.Length; i++)
        {
            ids[i].Write(bytes.AsSpan(i * TransactionId.Bytes));
        }

        return Do(new TestCommand(CommandKind.TransactionForget, "a/x") { Binary = bytes });
    }

    private protected static TestCommand WithId(CommandKind kind, TransactionDecision decision, TransactionId? id)
    {
        byte[] bytes = new byte[TransactionId.Bytes];
        (id ?? Id).Write(bytes);
        return new TestCommand(kind, "a/x")
        {
            Binary = bytes,
            Flags = decision == TransactionDecision.Pending ? 0 : CommandFlags.Number,
            Number = (long)decision,
        };
    }

    private protected Answer Do(TestCommand command)
    {
        if (((byte)command.Kind & 0x80) == 0)
        {
            command = command with { Account = Account };
            Follower.Now = State.Now;
            Follower.Follow(command);
        }

        return State.Do(command);
    }

    private protected Answer Numbered(TestCommand command, ulong number)
    {
        TestCommand numbered = command with
        {
            Flags = command.Flags | CommandFlags.Session | CommandFlags.Opening,
            Call = (1, number, 0),
        };
        return Do(numbered);
    }

    private protected bool Delays(TestCommand read)
    {
        Assert.True(Command.TryRead(read.Encode(), out Command command));
        return State.Machine.KeyValues.Prepared.Delays(in command);
    }

    private protected PrepareVote Vote()
    {
        Assert.True(PrepareVote.TryRead(State.LastValue(), out PrepareVote vote, out _));
        return vote;
    }

    private protected List<Answer> Outcomes(byte[]? value = null)
    {
        ReadOnlySpan<byte> rest = value ?? State.LastValue();
        List<Answer> outcomes = [];
        while (OutcomeList.TryTake(ref rest, out Outcome outcome))
        {
            outcomes.Add(Answer.Of(in outcome));
        }

        return outcomes;
    }

    private protected void RequireSame()
    {
        Assert.Equal(State.Machine.Digest, Follower.Machine.Digest);
        Assert.Equal(State.Machine.Digest, State.Machine.RecomputeDigest());
        Assert.True(State.Machine.AccountsMatch && Follower.Machine.AccountsMatch);
    }
}
