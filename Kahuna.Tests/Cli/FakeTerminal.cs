using System.Text;
using Kahuna.Cli.Terminal;

namespace Kahuna.Tests.Cli;

/// <summary>
/// A terminal on which a person types: keys from a text, in which names of keys stand in angle brackets. Enter follows
/// again and again, or the end of the input. Used by one test.
/// </summary>
/// <param name="keys">The keys.</param>
/// <param name="ends">The input ends behind them.</param>
internal sealed class FakeTerminal(string keys, bool ends = false) : ITerminal
{
    private readonly StringBuilder _screen = new();
    private int _at;

    public int Width => 40;

    public string Screen => _screen.ToString();

    public ValueTask<TerminalKey?> ReadKeyAsync(CancellationToken ct)
    {
        if (_at == keys.Length)
        {
            return ValueTask.FromResult(ends ? null : new TerminalKey(TerminalKeyKind.Enter));
        }

        if (keys[_at] == '<')
        {
            int end = keys.IndexOf('>', _at);
            string name = keys[(_at + 1)..end];
            _at = end + 1;
            return ValueTask.FromResult<TerminalKey?>(new TerminalKey(Enum.Parse<TerminalKeyKind>(name)));
        }

        int next = keys.IndexOf('<', _at);
        string text = keys[_at..(next < 0 ? keys.Length : next)];
        _at += text.Length;
        return ValueTask.FromResult<TerminalKey?>(new TerminalKey(TerminalKeyKind.Text, text));
    }

    public void Write(string text) => _screen.Append(text);
}
