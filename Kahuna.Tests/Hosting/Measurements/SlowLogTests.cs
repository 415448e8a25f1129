using System.Text;
using System.Text.Json;
using Kahuna.Server.Hosting.Measurements;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Hosting.Measurements;

/// <summary>What the slow log keeps of operations, from the loop's counters to the JSON.</summary>
public sealed class SlowLogTests
{
    private static readonly GroupId s_group = GroupId.Of(3, isEphemeral: false);

    private readonly SteppedTime _time = new();
    private readonly SlowLog _log;
    private readonly OperationTimes _times;

    public SlowLogTests()
    {
        _log = new SlowLog(new NodeId(7), TimeSpan.FromMilliseconds(100), _time);
        _times = new OperationTimes(_time, new Told(_log));
    }

    [Fact]
    public void An_operation_that_takes_long_is_told_with_its_key_and_stages()
    {
        RequestTag tag = Tag(CommandKind.Set);
        uint proposed = After(1);
        uint persisted = After(150);
        uint committed = After(2);
        _times.BeginAnswers();
        _times.Tell(
            tag, s_group, new OperationStages(proposed, persisted, committed), Encoding.UTF8.GetBytes("orders/1"));
        _times.Ended(tag, OutcomeStatus.Applied);
        After(4);
        _times.EndRound();

        JsonElement all = Read();
        Assert.Equal((7, 100, 1), (
            all.GetProperty("node").GetInt32(), all.GetProperty("thresholdMs").GetInt32(),
            all.GetProperty("recorded").GetInt32()));
        JsonElement one = Assert.Single(all.GetProperty("operations").EnumerateArray());
        Assert.Equal("set", one.GetProperty("operation").GetString());
        Assert.Equal("persistent", one.GetProperty("durability").GetString());
        Assert.Equal(3, one.GetProperty("partition").GetInt32());
        Assert.Equal("orders/1", one.GetProperty("key").GetString());
        Assert.True(one.GetProperty("keyIsText").GetBoolean());
        Assert.Equal("applied", one.GetProperty("status").GetString());
        Assert.Equal(157_000, one.GetProperty("totalUs").GetInt32());
        Assert.Equal(
            [("received", 0), ("proposed", 1_000), ("persisted", 151_000), ("committed", 153_000),
                ("applied", 153_000), ("answered", 157_000)],
            Events(one));
    }

    [Fact]
    public void A_fast_operation_is_not_told()
    {
        RequestTag tag = Tag(CommandKind.Set);
        After(99);
        _times.BeginAnswers();
        _times.Tell(tag, s_group, default, "a"u8);
        _times.Ended(tag, OutcomeStatus.Applied);
        _times.EndRound();
        Assert.Equal(0, _log.Recorded);
    }

    [Fact]
    public void What_becomes_slow_after_its_answer_was_made_is_told_without_its_key()
    {
        RequestTag tag = Tag(CommandKind.Get);
        _times.BeginAnswers();
        _times.Tell(tag, s_group, default, "a"u8);
        _times.Ended(tag, OutcomeStatus.Found);
        After(101);
        _times.EndRound();
        JsonElement one = Assert.Single(Read().GetProperty("operations").EnumerateArray());
        Assert.Equal("", one.GetProperty("key").GetString());
        Assert.Equal(JsonValueKind.Null, one.GetProperty("partition").ValueKind);
        Assert.Equal([("received", 0), ("answered", 101_000)], Events(one));
    }

    [Fact]
    public void A_command_of_many_keys_that_takes_long_by_itself_is_told_with_its_key()
    {
        CommandKind[] kinds =
        [
            CommandKind.KeyRangeDelete, CommandKind.KeyRange, CommandKind.Transaction, CommandKind.Script,
            CommandKind.GetMany,
        ];
        foreach (CommandKind kind in kinds)
        {
            _times.BeginAnswers();
            RequestTag tag = Tag(kind);
            After(150);
            _times.Tell(tag, s_group, default, Encoding.UTF8.GetBytes($"{kind}/"));
            _times.Ended(tag, OutcomeStatus.Applied);
            _times.EndRound();
        }

        Assert.Equal(kinds.Reverse().Select(static kind => $"{kind}/"), Keys(limit: 10));
    }

    [Fact]
    public void A_read_that_has_no_room_yet_leaves_nothing_for_the_next_answer()
    {
        RequestTag waits = Tag(CommandKind.Get);
        After(200);
        _times.BeginAnswers();
        _times.Tell(waits, s_group, default, "waits"u8);
        _times.Forget();
        _times.Ended(Tag(CommandKind.Get), OutcomeStatus.Found);
        _times.EndRound();
        Assert.Equal(0, _log.Recorded);
    }

    [Fact]
    public void An_answer_that_waits_for_news_is_not_slow()
    {
        RequestTag tag = Tag(CommandKind.LockAwait);
        After(5_000);
        _times.Ended(tag, OutcomeStatus.Found);
        _times.EndRound();
        Assert.Equal(0, _log.Recorded);
    }

    [Fact]
    public void The_newest_thousand_are_kept_newest_first()
    {
        for (int i = 0; i < 2_500; i++)
        {
            Slow($"k/{i}");
        }

        JsonElement all = Read(limit: 1_000);
        string[] keys = [.. all.GetProperty("operations").EnumerateArray().Select(
            static one => one.GetProperty("key").GetString()!)];
        Assert.Equal(2_500, all.GetProperty("recorded").GetInt32());
        Assert.Equal(Enumerable.Range(0, 1_000).Select(static i => $"k/{2_499 - i}"), keys);
        Assert.Equal(["k/2499", "k/2498"], Keys(limit: 2));
    }

    [Fact]
    public void A_thousand_slow_operations_in_one_round_are_all_told()
    {
        RequestTag tag = Tag(CommandKind.Set);
        After(300);
        _times.BeginAnswers();
        for (int i = 0; i < 1_000; i++)
        {
            _times.Tell(tag, s_group, default, Encoding.UTF8.GetBytes($"k/{i}"));
            _times.Ended(tag, OutcomeStatus.Applied);
        }

        _times.EndRound();
        Assert.Equal(Enumerable.Range(0, 1_000).Select(static i => $"k/{999 - i}"), Keys(limit: 1_000));
    }

    [Fact]
    public void A_key_is_cut_between_characters_and_bytes_are_shown_as_base64()
    {
        Slow(string.Concat(Enumerable.Repeat("ä", 100)) + "x");
        Assert.Equal(new string('ä', 64), Keys(limit: 1).Single());
        Slow("x" + new string('ä', 100));
        Assert.Equal("x" + new string('ä', 63), Keys(limit: 1).Single());

        byte[] bytes = [1, 0xFF, 0xFE];
        Slow(bytes);
        JsonElement one = Read(limit: 1).GetProperty("operations")[0];
        Assert.False(one.GetProperty("keyIsText").GetBoolean());
        Assert.Equal(bytes, one.GetProperty("key").GetBytesFromBase64());
    }

    [Fact]
    public void Without_a_threshold_nothing_is_kept()
    {
        SlowLog off = new(new NodeId(1), null, _time);
        OperationTimes times = new(_time, new Told(off));
        RequestTag tag = Tag(CommandKind.Set);
        After(2_000_000);
        times.BeginAnswers();
        times.Tell(tag, s_group, default, "a"u8);
        times.Ended(tag, OutcomeStatus.Applied);
        times.EndRound();
        Assert.Equal(0, off.Recorded);
        using JsonDocument json = JsonDocument.Parse(off.Render(10));
        Assert.Equal(JsonValueKind.Null, json.RootElement.GetProperty("thresholdMs").ValueKind);
    }

    private static (string, int)[] Events(JsonElement one) =>
    [
        .. one.GetProperty("events").EnumerateArray().Select(static happened =>
            (happened.GetProperty("name").GetString()!, happened.GetProperty("us").GetInt32())),
    ];

    private void Slow(string key) => Slow(Encoding.UTF8.GetBytes(key));

    private void Slow(byte[] key)
    {
        RequestTag tag = Tag(CommandKind.Set);
        After(101);
        _times.BeginAnswers();
        _times.Tell(tag, s_group, default, key);
        _times.Ended(tag, OutcomeStatus.Applied);
        _times.EndRound();
    }

    private string[] Keys(int limit) =>
    [
        .. Read(limit).GetProperty("operations").EnumerateArray().Select(
            static one => one.GetProperty("key").GetString()!),
    ];

    private JsonElement Read(int limit = 100)
    {
        using JsonDocument json = JsonDocument.Parse(_log.Render(limit));
        return json.RootElement.Clone();
    }

    private uint After(int ms)
    {
        _time.Now += TimeSpan.FromMilliseconds(ms);
        return OperationTimes.Stamp(_time);
    }

    private RequestTag Tag(CommandKind kind) => new(1, OperationTimes.Stamp(_time), (byte)kind);

    private sealed class Told(SlowLog log) : ILongOperations
    {
        public int ThresholdUs => log.ThresholdUs;

        public void Add(LongOperation operation) => log.Add(operation);
    }
}
