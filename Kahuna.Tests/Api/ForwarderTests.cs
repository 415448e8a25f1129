using System.Text;
using Kahuna.Client.Connection;
using Kahuna.Server.Cluster;
using Kahuna.Tests.Client;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;
using Microsoft.Extensions.Logging.Abstractions;

namespace Kahuna.Tests.Api;

/// <summary>What a node sends on for a unary caller is byte for byte what it was given.</summary>
public sealed class ForwarderTests
{
    [Theory]
    [InlineData(false, false, true)]
    [InlineData(true, false, false)]
    [InlineData(false, true, false)]
    public async Task A_forgotten_session_is_told_as_such_while_nothing_can_have_happened(
        bool mayHaveHappened, bool isFirstUnknown, bool isTold)
    {
        FakeCluster cluster = new();
        int attempts = 0;
        cluster[1].Answer = _ => new FakeReply(
            isFirstUnknown && ++attempts == 1 ? OutcomeStatus.Unknown : OutcomeStatus.SessionUnknown, 0, 0);
        await using Forwarder forwarder = new(
            [cluster[1].Endpoint],
            null,
            settings => new ConnectionPorts(cluster, settings.Time, Context: null, Seed: 3),
            NullLoggerFactory.Instance);
        byte[] answer = await forwarder.ForwardAsync(
            Encode(new Command
            {
                Kind = CommandKind.Set,
                Flags = CommandFlags.Session,
                Key = "k"u8,
                Value = "v"u8,
                SessionId = 6,
                Sequence = 7,
            }),
            mayHaveHappened,
            LastNet.Minute,
            CancellationToken.None);
        Outcome.TryRead(answer, out Outcome outcome);
        Assert.Equal(isTold ? OutcomeStatus.SessionUnknown : OutcomeStatus.NumberForgotten, outcome.Status);
    }

    [Fact]
    public async Task Every_field_is_sent_on()
    {
        FakeCluster cluster = new();
        cluster[1].Answer = static _ => new FakeReply(OutcomeStatus.FenceFailed, 12, 3);
        await using Forwarder forwarder = new(
            [cluster[1].Endpoint],
            null,
            settings => new ConnectionPorts(cluster, settings.Time, Context: null, Seed: 3),
            NullLoggerFactory.Instance);
        byte[][] commands =
        [
            Encode(new Command
            {
                Kind = CommandKind.Set,
                Flags = CommandFlags.IfValue
                    | CommandFlags.IfRevision
                    | CommandFlags.Ttl
                    | CommandFlags.Fenced
                    | CommandFlags.Session
                    | CommandFlags.Opening,
                Key = "bucket/key"u8,
                Value = "value"u8,
                ComparedValue = "compared"u8,
                ComparedRevision = 4,
                TtlMs = 5000,
                SessionId = 6,
                Sequence = 7,
                Lag = 2,
                FenceToken = 8,
                FenceName = "bucket/lock"u8,
            }),
            Encode(new Command
            {
                Kind = CommandKind.Increment,
                Flags = CommandFlags.Number
                    | CommandFlags.IfValue
                    | CommandFlags.NullCompared
                    | CommandFlags.Fenced
                    | CommandFlags.Session,
                Key = "k"u8,
                Number = -3,
                SessionId = 6,
                Sequence = 8,
                FenceToken = 9,
                FenceName = "lock"u8,
            }),
            Encode(new Command
            {
                Kind = CommandKind.LockAcquire,
                Flags = CommandFlags.Number | CommandFlags.Ttl | CommandFlags.Session,
                Key = "l"u8,
                Value = Form(),
                Number = 400,
                TtlMs = 1000,
                SessionId = 6,
                Sequence = 9,
            }),
            Encode(new Command
            {
                Kind = CommandKind.LockRelease,
                Flags = CommandFlags.IfRevision | CommandFlags.Session,
                Key = "l"u8,
                Value = "owner"u8,
                ComparedRevision = 5,
                SessionId = 6,
                Sequence = 10,
            }),
            Encode(new Command
            {
                Kind = CommandKind.LockAwait,
                Flags = CommandFlags.IfRevision | CommandFlags.Number,
                Key = "l"u8,
                Value = "owner"u8,
                ComparedRevision = 5,
                Number = 20_000,
            }),
            Encode(new Command
            {
                Kind = CommandKind.LockObserve,
                Flags = CommandFlags.IfRevision | CommandFlags.Number,
                Key = "l"u8,
                Number = 0,
            }),
            Encode(new Command
            {
                Kind = CommandKind.Set,
                Flags = CommandFlags.Session,
                Key = "of one epoch only"u8,
                SessionId = 6,
                Sequence = 11,
                Epoch = 3,
            }),
            Encode(new Command
            {
                Kind = CommandKind.LockList,
                Flags = CommandFlags.AtRevision | CommandFlags.Number,
                Key = ""u8,
                AtRevision = 3,
            }),
        ];
        foreach (byte[] command in commands)
        {
            byte[] bytes = await forwarder.ForwardAsync(
                command, mayHaveHappened: false, TimeSpan.FromMinutes(1), CancellationToken.None)
                .WaitAsync(Wait.Longest);
            Assert.True(Outcome.TryRead(bytes, out Outcome outcome));
            Assert.Equal((OutcomeStatus.FenceFailed, 12, 3), (outcome.Status, outcome.Revision, outcome.Number));
            FakeRequest sent = cluster[1].Received.Last();
            Assert.Equal(command, sent.Bytes);

            // An answer that may be held back has so much more time.
            uint longest = (CommandKind)command[0] == CommandKind.LockAwait ? 30_000u : 10_000u;
            Assert.InRange(sent.WaitMs, longest - 9_000, longest);
        }
    }

    private static byte[] Encode(Command command)
    {
        command.Durability = command.Epoch == 0 ? Durability.Persistent : Durability.Ephemeral;
        ByteBuffer buffer = ByteBuffer.Rent();
        command.Write(buffer);
        byte[] bytes = buffer.Written.ToArray();
        buffer.Return();
        return bytes;
    }

    private static byte[] Form()
    {
        LockBody form = new() { Mode = LockMode.Shared, Owner = Encoding.UTF8.GetBytes("owner"), Note = "note"u8 };
        byte[] bytes = new byte[form.EncodedBytes];
        form.Write(bytes);
        return bytes;
    }
}
