using System.Globalization;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Scripts;
using Kahuna.Wire.Scripts.Running;

namespace Kahuna.Tests.Scripts;

/// <summary>What expressions, functions, statements and errors of the language do.</summary>
public sealed class ScriptLanguageTests
{
    private readonly ExampleStore _store = new();

    [Theory]
    [InlineData("return 1 + 2 * 3 - 4 / 2 % 3", "5")]
    [InlineData("return -7 / 2", "-3")]
    [InlineData("return -7 % 2", "-1")]
    [InlineData("return 7 / 2.0", "3.5")]
    [InlineData("return 0x1F", "31")]
    [InlineData("return -(2 + 3)", "-5")]
    [InlineData("return 0.1 + 0.2", "0.30000000000000004")]
    [InlineData("return 1 = 1.0 && 1 != 2 && 2 <> 3 && 1 == 1", "true")]
    [InlineData("return 9007199254740993 = 9007199254740992.0", "false")]
    [InlineData("return 'a' < 'b' && 'Z' < 'a' && not ('b' <= 'a') && !false", "true")]
    [InlineData("return true || 1 / 0 = 1", "true")]
    [InlineData("return false && 1 / 0 = 1", "false")]
    [InlineData("return null = null && 1 != null", "true")]
    [InlineData("return [1, [2, 'x'], null] = [1, [2, 'x'], null]", "true")]
    [InlineData("return count(5..10)", "6")]
    [InlineData("return count(3..1)", "0")]
    [InlineData("return (1..3)[1]", "2")]
    [InlineData(@"return '\n\t\\\'\x41\u{1F600}'", "\n\t\\'A\U0001F600")]
    [InlineData("return to_str(1e21) = '1e+21' && to_str(1e20) = '100000000000000000000'", "true")]
    [InlineData("return to_json([0.000001, 0.0000001, -0.0, 123.5])", "[0.000001,1e-7,0,123.5]")]
    [InlineData("set a null extend a 9 let v = get a return v = null", "true")]
    [InlineData("return abs(-3) + abs(3)", "6")]
    [InlineData("return pow(2, 62) + pow(2, 0)", "4611686018427387905")]
    [InlineData("return pow(1.5, 2)", "2.25")]
    [InlineData("return round(2.5) + round(1.005, 2)", "4.01")]
    [InlineData("return ceil(1.2) + floor(-1.2) + ceil(3)", "3")]
    [InlineData("return min(3, 1.5, 2) + max(3, 1.5)", "4.5")]
    [InlineData("return to_int('42') + to_long(1.9) + to_number(true) + to_integer(3)", "47")]
    [InlineData("return to_double('1e3') + to_float(1)", "1001")]
    [InlineData("return concat(to_str(1), to_string(2.5), 'x', true)", "12.5xtrue")]
    [InlineData("return to_bool('true') && to_boolean(1) && not to_bool('0')", "true")]
    [InlineData("return to_json([1, 'a\"b', null, 2.5, to_bytes('hi')])", "[1,\"a\\\"b\",null,2.5,\"aGk=\"]")]
    [InlineData("return is_int(1) && is_integer(1) && is_long(1) && not is_int(1.0)", "true")]
    [InlineData("return is_double(1.0) && is_float(1.0) && is_str('') && is_string('a')", "true")]
    [InlineData("return is_bool(true) && is_boolean(false) && is_null(null) && is_array([])", "true")]
    [InlineData("return is_bytes(to_bytes('a')) && not is_bytes('a')", "true")]
    [InlineData("return concat(upper('aßé'), lower('AÉ'))", "AßéaÉ")]
    [InlineData("return len('aß😀') + length('')", "3")]
    [InlineData("return substring('aß😀x', 1, 2)", "ß😀")]
    [InlineData("return substring('abc', 5)", "")]
    [InlineData("return starts_with('abc', 'ab') && ends_with('abc', 'bc')", "true")]
    [InlineData("return index_of('ß😀x', 'x') + index_of('a', 'b')", "1")]
    [InlineData("return count(split('a,b,,c', ','))", "4")]
    [InlineData("return trim('  a b \n')", "a b")]
    [InlineData("return current_time()", "1000000")]
    [InlineData("let x = 0 for i in [1, 2, 3] do let x = x + i end return x", "6")]
    [InlineData("let x = 0 while true do let x = x + 1 if x > 4 then break end continue end return x", "5")]
    [InlineData("if false then return 1 elseif true then return 2 else return 3 end", "2")]
    [InlineData("IF 1 > 2 THEN RETURN 1 ELSE RETURN 9 END", "9")]
    [InlineData("set a 1 let v = get a return concat(v, not set, not found)", "1falsefalse")]
    [InlineData("set a 1 NX set a 2 NX return not set", "true")]
    [InlineData("set a 1 XX return not set", "true")]
    [InlineData("set a 1 set a 2 CMP 1 set a 3 CMP 9 let v = get a return v", "2")]
    [InlineData("delete a return not deleted", "true")]
    [InlineData("extend a 5 return not extended", "true")]
    [InlineData("set a 1 EX 500 let v = get a return expires(v)", "500")]
    [InlineData("set a 1 extend a 700 let v = get a return expires(v)", "700")]
    [InlineData("set a 1 del a let e = exists a return e", "false")]
    [InlineData("begin (autoCommit=false, timeout=5) set a 1 end", "true")]
    [InlineData("eset a 1 let v = eget a return v", "1")]
    [InlineData("return @n + 1", "8")]
    [InlineData("set `a/1` 1 set `b/1` 2 let all = scan by prefix '' return count(all)", "2")]
    [InlineData("set `a/1` 1 set `b/1` 2 let all = scan by prefix (concat('', '')) return count(all)", "2")]
    [InlineData("set `ab/1` 1 set `b` 2 let all = scan by prefix a return all[0]", "1")]
    [InlineData("eset `a/1` 1 let all = scan by prefix a return not found", "true")]
    [InlineData("eset `a/1` 1 let all = escan by prefix a return not found", "false")]
    [InlineData("let n = 0 set `a/1` 1 for e in [0] do scan by prefix a let n = n + 1 end return n", "1")]
    public void It_returns(string text, string expected) =>
        Assert.Equal(expected, Shown(_store.Run(text, new ScriptParameter("n", ScriptValue.Of(7L)))));

    [Theory]
    [InlineData("return 9223372036854775807 + 1", 1, 1)]
    [InlineData("return 1 / 0", 1, 1)]
    [InlineData("return concat('a', null)", 1, 1)]
    [InlineData("return to_str(null)", 1, 1)]
    [InlineData("return to_str([1])", 1, 1)]
    [InlineData("throw null", 1, 1)]
    [InlineData("return 1.0 / 0", 1, 1)]
    [InlineData("return 'a' + 'b'", 1, 1)]
    [InlineData("return not 1", 1, 1)]
    [InlineData("return 1 = 'a'", 1, 1)]
    [InlineData("return 'a' < 1", 1, 1)]
    [InlineData("return true && 1", 1, 1)]
    [InlineData("let x = 1\nif x then return 1 end", 2, 1)]
    [InlineData("return [1][5]", 1, 1)]
    [InlineData("return to_int('1.5')", 1, 1)]
    [InlineData("return to_int('')", 1, 1)]
    [InlineData("return to_int('5\\0')", 1, 1)]
    [InlineData("return to_double('NaN')", 1, 1)]
    [InlineData("return to_bool('yes')", 1, 1)]
    [InlineData("return pow(2, 64)", 1, 1)]
    [InlineData("return pow(2, 0.5)", 1, 1)]
    [InlineData("return count(1)", 1, 1)]
    [InlineData("return upper(1)", 1, 1)]
    [InlineData("return rev(1)", 1, 1)]
    [InlineData("set a 1 let v = get a return rev(v)", 1, 23)]
    [InlineData("set a 1 set a 2 CMPREV 1", 1, 9)]
    [InlineData("set a [1]", 1, 1)]
    [InlineData("set a 1 EX 0", 1, 1)]
    [InlineData("return missing", 1, 1)]
    [InlineData("return @missing", 1, 1)]
    [InlineData("get (concat('', ''))", 1, 1)]
    [InlineData("get (concat('__kahuna', '/x'))", 1, 1)]
    [InlineData("for i in 5 do end", 1, 1)]
    [InlineData("throw 'x'", 1, 1)]
    [InlineData("\n\n  throw 'x'", 3, 3)]
    [InlineData("while true do end", 1, 1)]
    [InlineData("return count(0..30000)", 1, 1)]
    [InlineData("let s = 'x' while true do let s = concat(s, s) end", 1, 27)]
    [InlineData("for i in 1..1001 do set (concat('b/', i)) 1 end", 1, 21)]
    public void It_fails_with_the_position_of_the_statement(string text, int line, int column)
    {
        ScriptRun run = new(
            ScriptCode.Compile(ScriptProgram.Parse(text)),
            [],
            1,
            Kahuna.Server.State.KeyValues.ScriptRunner.Budget);
        while (run.Advance() is ScriptStop.NeedsKey)
        {
            run.Supply(null);
        }

        Assert.Equal((line, column), (run.Error.Line, run.Error.Column));
        Assert.StartsWith($"line {line}, column {column}: ", run.Error.Message, StringComparison.Ordinal);
        Assert.EndsWith("; nothing was applied", run.Error.Message, StringComparison.Ordinal);
        Assert.Empty(run.Writes);
    }

    [Theory]
    [InlineData("return", false)]
    [InlineData("set", true)]
    [InlineData("set a", true)]
    [InlineData("set a 1 NX XX", true)]
    [InlineData("set a 1 NX NX", true)]
    [InlineData("let = 1", true)]
    [InlineData("if true then", true)]
    [InlineData("return 1 +", true)]
    [InlineData("return (1", true)]
    [InlineData("return 'a", true)]
    [InlineData("return 99999999999999999999", true)]
    [InlineData("return nothing(1)", true)]
    [InlineData("return abs()", true)]
    [InlineData("break", true)]
    [InlineData("sleep 5", true)]
    [InlineData("begin (locking=both) end", true)]
    [InlineData("begin (timeout=1, timeout=2) end", true)]
    [InlineData("begin (nothing=1) end", true)]
    [InlineData("return 1 ^ 2", true)]
    [InlineData("scan by prefix", true)]
    [InlineData("scan by bucket a", true)]
    [InlineData("scan prefix a", true)]
    [InlineData("scan by prefix `__kahuna`", true)]
    [InlineData("return '\\q'", true)]
    public void Its_syntax_is_checked_first(string text, bool isWrong)
    {
        if (!isWrong)
        {
            ScriptProgram.Parse(text);
            return;
        }

        ScriptSyntaxException wrong = Assert.Throws<ScriptSyntaxException>(() => ScriptProgram.Parse(text));
        Assert.True(wrong is { Line: >= 1, Column: >= 1 });
        Assert.StartsWith(
            $"line {wrong.Line}, column {wrong.Column}: ", wrong.Message, StringComparison.Ordinal);
    }

    [Fact]
    public void Deep_nesting_is_an_error_of_the_syntax()
    {
        foreach (string text in new[]
        {
            "return " + new string('(', 10_000),
            "return " + new string('[', 10_000),
            "return " + string.Concat(Enumerable.Repeat("not ", 10_000)) + "true",
            string.Concat(Enumerable.Repeat("if true then ", 4_000)),
            "return " + string.Concat(Enumerable.Repeat("-", 10_000)) + "1",
        })
        {
            Assert.Throws<ScriptSyntaxException>(() => ScriptProgram.Parse(text));
        }
    }

    [Theory]
    [InlineData("tr-TR")]
    [InlineData("de-DE")]
    [InlineData("ar-SA")]
    public void No_culture_changes_a_result(string culture)
    {
        const string Text =
            "return [upper('i'), lower('I'), 1.5, to_str(-2.25), to_double('1.5'), -3, to_json([1.5]), 'i' < 'I']";
        byte[] expected = Encoded(_store.Run(Text));
        CultureInfo before = CultureInfo.CurrentCulture;
        try
        {
            CultureInfo.CurrentCulture = new CultureInfo(culture);
            Assert.Equal(expected, Encoded(_store.Run(Text)));
        }
        finally
        {
            CultureInfo.CurrentCulture = before;
        }
    }

    private static byte[] Encoded(ScriptValue value)
    {
        ByteBuffer target = ByteBuffer.Rent();
        value.Write(target);
        byte[] bytes = target.Written.ToArray();
        target.Return();
        return bytes;
    }

    private static string Shown(ScriptValue value) => value.Plain switch
    {
        { Kind: ScriptValueKind.Bool } plain => plain.AsBool ? "true" : "false",
        { Kind: ScriptValueKind.Integer } plain => plain.AsInteger.ToString(CultureInfo.InvariantCulture),
        { Kind: ScriptValueKind.Double } plain => plain.AsDouble.ToString("R", CultureInfo.InvariantCulture),
        { Kind: ScriptValueKind.String } plain => plain.AsString,
        var plain => plain.Kind.ToString(),
    };
}
