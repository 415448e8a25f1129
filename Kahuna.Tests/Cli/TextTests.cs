using System.Text;
using Kahuna.Cli.Results;
using Kahuna.Cli.Terminal;

namespace Kahuna.Tests.Cli;

/// <summary>Texts that people see and write: escapes, quotes, spans of time.</summary>
public sealed class TextTests
{
    [Theory]
    [InlineData("plain äö 漢字 😀", "plain äö 漢字 😀")]
    [InlineData("a\nb\r\t\\", @"a\nb\r\t\\")]
    [InlineData("\u001b]0;x\u0007", @"\x1b]0;x\x07")]
    [InlineData("\u009b31m", @"\u{9b}31m")]
    [InlineData("\u202e\u2028\ufeff\u200d", @"\u{202e}\u{2028}\u{feff}\u{200d}")]
    public void What_acts_on_a_terminal_is_escaped(string text, string shown)
    {
        Assert.Equal(shown, ShownText.Of(text));

        // What is shown can be pasted back.
        Assert.Equal(Encoding.UTF8.GetBytes(text), Assert.Single(QuotedWords.Of($"\"{shown}\"")));
    }

    [Fact]
    public void An_empty_list_is_shown_as_nothing_else_is() =>
        Assert.Equal(("-", "-"), (RecordText.Of(Array.Empty<object>()), RecordText.Of(null)));

    [Fact]
    public void Bytes_that_are_no_text_are_escaped_one_by_one()
    {
        byte[] bytes = [0xff, (byte)'a', 0xc3, 0x00];
        Assert.Equal(@"\xffa\xc3\x00", ShownText.Of(bytes));
        Assert.Equal(bytes, Assert.Single(QuotedWords.Of("\"" + @"\xffa\xc3\x00" + "\"")));
        Assert.Equal("aaaa… (1,000 bytes)", ShownText.Of(Enumerable.Repeat((byte)'a', 1000).ToArray(), 4));
    }

    [Theory]
    [InlineData("", "")]
    [InlineData("  a  b ", "a|b")]
    [InlineData("a # b", "a")]
    [InlineData("a#b", "a#b")]
    [InlineData("'a b' \"c d\"", "a b|c d")]
    [InlineData("a\"b c\"d", "ab cd")]
    [InlineData("'a\\n'", "a\\n")]
    [InlineData("\"\"", "")]
    public void Words_are_cut_at_blanks_outside_of_quotes(string line, string words) =>
        Assert.Equal(words, string.Join('|', QuotedWords.TextOf(line)));

    [Theory]
    [InlineData("\"a", "column 1")]
    [InlineData("x 'a", "column 3")]
    [InlineData("\"\\q\"", "column 2")]
    [InlineData("\"\\x1\"", "column 2")]
    [InlineData("\"\\u{110000}\"", "column 2")]
    [InlineData("\"\\", "column 2")]
    public void A_quote_or_escape_that_is_wrong_is_told_with_its_column(string line, string expected) =>
        Assert.Contains(
            expected, Assert.Throws<FormatException>(() => QuotedWords.Of(line)).Message, StringComparison.Ordinal);

    [Theory]
    [InlineData("500ms", 500)]
    [InlineData("15s", 15_000)]
    [InlineData("1.5s", 1_500)]
    [InlineData("10min", 600_000)]
    [InlineData("5m", 300_000)]
    [InlineData("2h", 7_200_000)]
    [InlineData("1d", 86_400_000)]
    [InlineData("7", 7_000)]
    [InlineData("0", 0)]
    public void Spans_are_read(string text, double ms)
    {
        Assert.True(SpanText.TryParse(text, out TimeSpan span));
        Assert.Equal(ms, span.TotalMilliseconds);
    }

    [Theory]
    [InlineData("")]
    [InlineData("s")]
    [InlineData("-1s")]
    [InlineData("5x")]
    [InlineData("1e9d")]
    [InlineData("99999999999999999999d")]
    [InlineData("NaN")]
    public void What_is_no_span_is_refused(string text) => Assert.False(SpanText.TryParse(text, out _));
}
