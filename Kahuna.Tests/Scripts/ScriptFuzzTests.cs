using System.Globalization;
using System.Text;
using Kahuna.Server.State.KeyValues;
using Kahuna.Tests.Tidy;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Scripts;
using Kahuna.Wire.Scripts.Running;

namespace Kahuna.Tests.Scripts;

/// <summary>
/// Whatever a text is, it parses or is refused with a position, and what parses ends within its budget, with the same
/// bytes each time.
/// </summary>
public sealed class ScriptFuzzTests
{
    /// <summary>The number of texts; set it for a long run.</summary>
    private const string CountVariable = "KAHUNA_SCRIPT_FUZZ";

    private const int CountDefault = 20_000;

    private static readonly string[] s_words =
    [
        "set", "get", "delete", "extend", "exists", "eset", "eget", "by", "bucket", "scan", "prefix", "let", "if",
        "then", "elseif", "else", "end", "for", "in", "do", "while", "break", "continue", "begin", "commit", "rollback",
        "return", "throw", "NX", "XX", "EX", "CMP", "CMPREV", "NOREV", "AT", "not", "true", "false", "null", "a", "b",
        "x", "@p", "@q", "`k/1`", "'text'", "\"t\\n\"", "1", "0", "7", "-3", "2.5", "0x1F", "9223372036854775807", "(",
        ")", "[", "]", ",", "=", "==", "!=", "<", "<=", ">", "..", "+", "-", "*", "/", "%", "&&", "||", "!", "\n",
        "count(", "concat(", "to_int(", "to_str(", "split(", "pow(", "rev(", "current_time()", "# c\n", "found",
        "deleted", "set x 1", "let x = x + 1", "while x < 9 do", "for i in 1..3 do",
        "let a = scan by prefix", "escan by prefix @p", "get by bucket", "scan by prefix ''", "for e in a do",
    ];

    private static readonly ScriptBudget s_budget = ScriptRunner.Budget with { Steps = 2_000, Bytes = 256 * 1024 };

    [Fact]
    public void Every_text_ends_and_each_time_alike()
    {
        Random random = new(20_261_127);
        string[] corpus = Directory.GetFiles(Repository.FullPath("docs/scripts"), "*.4gl")
            .Order(StringComparer.Ordinal).Select(static file => File.ReadAllText(file)).ToArray();
        int count = Environment.GetEnvironmentVariable(CountVariable) is { } number
            ? int.Parse(number, CultureInfo.InvariantCulture)
            : CountDefault;
        int parsed = 0;
        for (int i = 0; i < count; i++)
        {
            string text = (i % 3) switch
            {
                0 => Sentence(random),
                1 => Mutated(corpus[random.Next(corpus.Length)], random),
                _ => Noise(random),
            };
            parsed += Try(text) ? 1 : 0;
        }

        Assert.InRange(parsed, count / 100, count);
    }

    private static bool Try(string text)
    {
        ScriptProgram program;
        try
        {
            program = ScriptProgram.Parse(text);
        }
        catch (ScriptSyntaxException wrong)
        {
            Assert.True(wrong is { Line: >= 1, Column: >= 1 }, text);
            return false;
        }

        Assert.Equal(Run(program, text), Run(program, text));
        return true;
    }

    private static string Run(ScriptProgram program, string text)
    {
        ScriptRun run = new(
            ScriptCode.Compile(program),
            [new("p", ScriptValue.Of("k/1")), new("q", ScriptValue.Of(3L))],
            5,
            s_budget);
        int asked = 0;
        ScriptStop stop;
        while ((stop = run.Advance()) is not (ScriptStop.Finished or ScriptStop.Failed))
        {
            Assert.True(asked++ <= s_budget.Steps, text);
            ScriptValue entry = ScriptValue.OfEntry("k/1", "7"u8.ToArray(), 4, -1);
            if (stop == ScriptStop.NeedsKey)
            {
                run.Supply(asked % 2 == 0 ? null : entry);
            }
            else
            {
                run.SupplyEntries([entry], isWhole: true);
            }
        }

        if (stop == ScriptStop.Failed)
        {
            Assert.True(run.Error is { Line: >= 1, Column: >= 1 }, text);
            Assert.Empty(run.Writes);
            return run.Error.Message;
        }

        ByteBuffer result = ByteBuffer.Rent();
        run.Result.Write(result);
        Assert.InRange(result.Length, 1, 2 * s_budget.Bytes);
        string shown = Convert.ToHexString(result.Written) + string.Join(
            ';', run.Writes.Select(static write => $"{Encoding.UTF8.GetString(write.Key.Span)} {write.Kind}"));
        result.Return();
        return shown;
    }

    private static string Sentence(Random random)
    {
        StringBuilder text = new();
        for (int words = random.Next(1, 40); words > 0; words--)
        {
            text.Append(s_words[random.Next(s_words.Length)]).Append(' ');
        }

        return text.ToString();
    }

    private static string Mutated(string text, Random random)
    {
        StringBuilder changed = new(text);
        for (int edits = random.Next(1, 4); edits > 0 && changed.Length > 1; edits--)
        {
            int at = random.Next(changed.Length);
            switch (random.Next(3))
            {
                case 0:
                    changed.Remove(at, Math.Min(random.Next(1, 6), changed.Length - at));
                    break;
                case 1:
                    changed.Insert(at, s_words[random.Next(s_words.Length)]);
                    break;
                default:
                    changed[at] = (char)random.Next(32, 127);
                    break;
            }
        }

        return changed.ToString();
    }

    private static string Noise(Random random) =>
        new([.. Enumerable.Range(0, random.Next(1, 60)).Select(_ => (char)random.Next(1, 0xD7FF))]);
}
