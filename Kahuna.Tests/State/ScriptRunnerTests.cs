using System.Text;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Scripts;

namespace Kahuna.Tests.State;

/// <summary>
/// A script takes effect as a whole or not at all, and does the same on every node.
/// </summary>
public sealed class ScriptRunnerTests
{
    private readonly StateDriver _state = new();
    private readonly StateDriver _follower = new();

    [Fact]
    public void What_a_script_writes_takes_effect_together()
    {
        Set("s/a", "1");
        Set("s/gone", "x");
        Set("s/kept", "x");
        ScriptValue result = Run(
            "let a = get `s/a` set `s/a` (to_int(a) + 1) set `s/b` 'new' EX 50 delete `s/gone` extend `s/kept` 70 "
                + "set `s/void` null return rev(a)");
        Assert.Equal(1, result.AsInteger);
        Assert.Equal(("2", "new", null), (Get("s/a").Value, Get("s/b").Value, Get("s/gone").Value));
        Assert.True(_state.Get("s/void").IsNull);
        Assert.Equal((50, 70), (Get("s/b").Number, Get("s/kept").Number));
        _state.Now += 60;
        Assert.Equal((null, "x"), (Get("s/b").Value, Get("s/kept").Value));
    }

    [Fact]
    public void A_null_value_is_read_as_null_and_an_empty_one_as_empty()
    {
        Set("s/null", null);
        Set("s/empty", "");
        ScriptValue result = Run(
            "let n = get `s/null` let e = get `s/empty` let all = get by bucket s "
                + "set `s/copy` n return [is_null(n), e = '', rev(n), is_null(all[1]), all[0] = '']");
        Assert.Equal(
            [true, true, true, true],
            new[] { 0, 1, 3, 4 }.Select(i => result.Items[i].AsBool));
        Assert.Equal(1, result.Items[2].AsInteger);
        Assert.True(Get("s/copy").IsNull);
    }

    [Fact]
    public void An_error_leaves_nothing()
    {
        Set("s/a", "1");
        ulong before = _state.Machine.Digest;
        foreach (string text in new[]
        {
            "set `s/a` 2 throw 'no'",
            "set `s/a` 2 set `s/b` (1 / 0)",
            "set `s/a` 2 while true do set `s/b` 1 end",
            "set `s/a` 2 set `t/a` 2",
            "set `s/a` 2 eset `s/a` 2",
            "set `s/a` 2 scan by prefix `s/`",
            "set `s/a` 2 set (concat('t', '/a')) 2",
            "set `s/a` 2 let",
            "begin set `s/a` 2 rollback end",
        })
        {
            Answer answer = Both(Script(text));
            Assert.True(
                answer.Status == OutcomeStatus.ScriptFailed || text.Contains("rollback", StringComparison.Ordinal),
                $"{text}: {answer}");
            Assert.Equal("1", Get("s/a").Value);
        }

        Assert.Equal(before, _state.Machine.Digest);
    }

    [Fact]
    public void A_bucket_is_read_in_order_without_what_is_gone()
    {
        Set("s/b", "2");
        Set("s/a", "1");
        Set("s/c/d", "of another bucket");
        Set("s0", "of another bucket");
        Set("s", "a bucket of its own name");
        Set("s/soon", "x", ttlMs: 10);
        Set("s/deleted", "x");
        Both(new TestCommand(CommandKind.Delete, "s/deleted"));
        _state.Now += 20;
        Set("s/b/c", "of another bucket");
        ScriptValue all = Run("set `s/bb` 'own' delete `s/a` let all = get by bucket s return all");
        Assert.Equal(["s", "s/b", "s/bb"], all.Items.Select(static item => item.Key));
        Assert.Equal(
            ["a bucket of its own name", "2", "own"], all.Items.Select(static item => item.Value.AsString));
    }

    [Fact]
    public void A_bucket_that_is_too_large_is_an_error()
    {
        for (int i = 0; i < 1_001; i++)
        {
            Set($"large/{i:0000}", "x");
        }

        Assert.Equal(OutcomeStatus.ScriptFailed, Both(Script("get by bucket large", "large/1")).Status);
        Both(new TestCommand(CommandKind.Delete, "large/0500"));
        Assert.Equal(1_000, Run("let all = get by bucket large return count(all)", "large/1").AsInteger);
    }

    [Fact]
    public void An_earlier_revision_is_read_from_history()
    {
        Set("s/a", "1");
        Set("s/a", "2");
        Assert.Equal("1", Run("let old = get `s/a` AT 1 return old").Value.AsString);
    }

    [Fact]
    public void A_repeated_number_gets_the_result_of_the_first_run()
    {
        TestCommand count = Script(
            "let n = get `s/n` let next = 1 if n != null then let next = to_int(n) + 1 end set `s/n` next return next");
        for (int i = 0; i < 2; i++)
        {
            Assert.Equal(OutcomeStatus.Applied, _state.Numbered(count, session: 9, sequence: 1).Status);
            ReadOnlySpan<byte> value = _state.LastValue();
            Assert.True(ScriptValue.TryRead(ref value, out ScriptValue result));
            Assert.Equal(1, result.AsInteger);
        }

        Assert.Equal("1", Get("s/n").Value);
    }

    [Fact]
    public void The_changes_of_a_script_are_told_as_one_transaction()
    {
        Marks marks = new();
        _state.Machine.TellChanges(marks, new GroupId(7), new Epoch(3));
        Run("set `s/a` 1 set `s/b` 2");
        Assert.Equal(2, marks.Told.Count);
        Assert.NotEqual(0, Assert.Single(marks.Told.Distinct()));
    }

    private ScriptValue Run(string text, string key = "s/key")
    {
        Answer answer = Both(Script(text, key));
        Assert.True(answer.Status == OutcomeStatus.Applied, $"{answer}");
        ReadOnlySpan<byte> value = _state.LastValue();
        Assert.True(ScriptValue.TryRead(ref value, out ScriptValue result));
        Assert.True(value.IsEmpty);
        return result;
    }

    private static TestCommand Script(string text, string key = "s/key")
    {
        ByteBuffer body = ByteBuffer.Rent();
        Assert.Null(ScriptBody.Write(body, text, []));
        byte[] bytes = body.Written.ToArray();
        body.Return();
        Assert.Null(ScriptBody.Refusal(bytes));
        Assert.Equal(text.Length, Encoding.UTF8.GetByteCount(text));
        return new TestCommand(CommandKind.Script, key) { Binary = bytes };
    }

    /// <summary>Carries out a command on both, of which only one answers.</summary>
    private Answer Both(TestCommand command)
    {
        _follower.Now = _state.Now;
        _follower.Follow(command);
        Answer answer = _state.Do(command);
        Assert.Equal(_state.Machine.Digest, _follower.Machine.Digest);
        Assert.Equal(_state.Machine.RecomputeDigest(), _state.Machine.Digest);
        return answer;
    }

    private void Set(string key, string? value, long ttlMs = 0) => Both(new TestCommand(CommandKind.Set, key, value)
    {
        Flags = ttlMs == 0 ? CommandFlags.None : CommandFlags.Ttl,
        TtlMs = ttlMs,
    });

    private Answer Get(string key) => _state.Get(key);

    /// <summary>Notes which transaction each change is of.</summary>
    private sealed class Marks : IChangeSink
    {
        public List<int> Told { get; } = [];

        public void Changed(in ChangePosition position, scoped in Change change) => Told.Add(change.Transaction);
    }
}
