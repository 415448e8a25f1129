using Kahuna.Server.State.Rows;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Scripts;

namespace Kahuna.Tests.State;

/// <summary>A script is read with the words of its entry's feature level, whatever words the build has.</summary>
public sealed class ScriptLevelTests
{
    private const ulong Session = 9;

    private static readonly FeatureLevel s_level = FeatureLevels.Test;

    /// <summary>A build without <c>norev</c> and <c>trim</c>.</summary>
    private static readonly StateLimits s_older = new()
    {
        ScriptWords = new ScriptWords([.. ScriptWords.Released.Rows.Where(static row => !IsLater(row))]),
    };

    /// <summary>The next build: it has both from the next level on, and then another <c>abs</c>, too.</summary>
    private static readonly StateLimits s_newer = new()
    {
        Features = FeatureLevels.SupportedInTest,
        ScriptWords = new ScriptWords(
        [
            new ScriptWord("abs", new ScriptSignature(ScriptFunction.IsDouble, 1, 1)) { Since = s_level },
            .. ScriptWords.Released.Rows.Select(static row => IsLater(row) ? row with { Since = s_level } : row),
        ]),
    };

    private readonly StateDriver _older = new(s_older);
    private readonly StateDriver _newer = new(s_newer);

    [Theory]
    [InlineData("return trim(' a ')", "line 1, column 8: ")]
    [InlineData("set `s/a` 1\n  NOREV", "line 2, column 3: ")]
    [InlineData("let norev = 3 let trim = norev set `s/a` trim return norev", null)]
    [InlineData("set `s/a` 1 return abs(-1.5)", null)]
    [InlineData("let trim = 2 set `s/a` trim return trim(trim)", "line 1, column 36: ")]
    public void Below_its_level_a_word_is_none_for_builds_with_it_and_without(string text, string? error)
    {
        StateDriver replayed = new(s_newer);
        TestCommand script = Numbered(text, 1);
        Answer answer = _older.Do(script);
        Assert.Equal(error is null ? OutcomeStatus.Applied : OutcomeStatus.ScriptFailed, answer.Status);
        Assert.StartsWith(error ?? "", answer.Value, StringComparison.Ordinal);
        Assert.Equal(answer, _newer.Do(script));
        Assert.Equal(_older.LastValue(), _newer.LastValue());
        replayed.Follow(script);

        // What a session remembers of the outcome is a part of the digest.
        foreach (StateDriver state in new[] { _newer, replayed, _newer.Reloaded(s_newer), _newer.Reloaded(s_older) })
        {
            Assert.Equal(_older.Machine.Digest, state.Machine.Digest);
            Assert.Equal(state.Machine.RecomputeDigest(), state.Machine.Digest);
            Assert.Equal(answer, state.Do(script));
            Assert.Equal(_older.LastValue(), state.LastValue());
        }
    }

    [Fact]
    public void From_its_level_on_it_is_a_word_also_in_texts_that_were_run_before()
    {
        const string AsName = "let norev = 3 return norev";
        const string AsWord = "set `s/a` 1 set `s/a` 2 norev let old = get `s/a` return to_str(old)";
        const string Call = "return trim(' a ')";
        const string Changed = "return abs(-1.5)";
        for (int i = 0; i < 2; i++)
        {
            Assert.Equal(3, Run(AsName).AsInteger);
            Assert.Equal(OutcomeStatus.ScriptFailed, _newer.Do(Script(AsWord)).Status);
            Assert.Equal(OutcomeStatus.ScriptFailed, _newer.Do(Script(Call)).Status);
            Assert.Equal(1.5, Run(Changed).AsDouble);
        }

        _newer.Level = s_level;
        for (int i = 0; i < 2; i++)
        {
            Assert.Equal(OutcomeStatus.ScriptFailed, _newer.Do(Script(AsName)).Status);
            Assert.Equal("2", Run(AsWord).AsString);
            Assert.Equal("a", Run(Call).AsString);
            Assert.True(Run(Changed).AsBool);
        }
    }

    [Fact]
    public void A_replica_that_replays_both_levels_has_the_same_state()
    {
        string[] texts = ["return trim(' a ')", "let norev = 1 set `s/a` norev", "set `s/a` 2 norev"];
        StateDriver replayed = new(s_newer);
        ulong sequence = 0;
        foreach (FeatureLevel level in new[] { FeatureLevel.First, s_level })
        {
            _newer.Level = level;
            replayed.Level = level;
            foreach (string text in texts)
            {
                TestCommand script = Numbered(text, ++sequence);
                _newer.Do(script);
                replayed.Follow(script);
                Assert.Equal(_newer.Machine.Digest, replayed.Machine.Digest);
            }
        }
    }

    [Theory]
    [InlineData("let trim = 1 return trim", false)]
    [InlineData("let `norev` = 1 return upper('a')", false)]
    [InlineData("if false then return [1, trim('')] end", true)]
    [InlineData("set a 1 NoRev", true)]
    [InlineData("return abs(1)", true)]
    public void A_program_knows_the_level_that_its_words_need(string text, bool needsLevel)
    {
        ScriptProgram program = ScriptProgram.Parse(text, s_newer.ScriptWords.At(s_level));
        Assert.Equal(needsLevel ? s_level : FeatureLevel.First, program.Level);
    }

    [Fact]
    public void Every_word_of_a_release_belongs_to_a_level_of_a_release()
    {
        IReadOnlyList<ScriptWord> rows = ScriptWords.Released.Rows;
        Assert.All(rows, static row => Assert.True(row.Since <= FeatureLevels.Newest, row.Name));
        Assert.All(rows, static row => Assert.Equal(row.Name.ToLowerInvariant(), row.Name));
        Assert.Distinct(rows.Select(static row => (row.Name, row.Since, row.Signature is null)));
    }

    private static bool IsLater(ScriptWord row) => row.Name is "norev" or "trim";

    private ScriptValue Run(string text)
    {
        Answer answer = _newer.Do(Script(text));
        Assert.True(answer.Status == OutcomeStatus.Applied, $"{text}: {answer}");
        ReadOnlySpan<byte> value = _newer.LastValue();
        Assert.True(ScriptValue.TryRead(ref value, out ScriptValue result));
        return result;
    }

    private static TestCommand Numbered(string text, ulong sequence) => Script(text) with
    {
        Flags = CommandFlags.Session | CommandFlags.Opening,
        Call = (Session, sequence, 0),
    };

    private static TestCommand Script(string text)
    {
        ByteBuffer body = ByteBuffer.Rent();
        Assert.Null(ScriptBody.Write(body, text, []));
        TestCommand command = new(CommandKind.Script, "s/key") { Binary = body.Written.ToArray() };
        body.Return();
        return command;
    }
}
