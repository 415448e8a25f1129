using System.Text;
using Kahuna.Cli.Errors;

namespace Kahuna.Cli.Shell;

/// <summary>Reads lines of UTF-8 from a stream, each up to a limit. Used by one shell.</summary>
/// <param name="stream">The stream; its owner closes it.</param>
internal sealed class InputLines(Stream stream)
{
    private static readonly UTF8Encoding s_strict = new(false, throwOnInvalidBytes: true);

    private readonly byte[] _part = new byte[16 * 1024];
    private int _begin;
    private int _end;

    /// <summary>The number of the line that was read last, from 1.</summary>
    public long Number { get; private set; }

    /// <summary>Reads a line; null: there is none.</summary>
    /// <exception cref="CliException">It is too long or no text.</exception>
    public async Task<string?> ReadAsync(CancellationToken ct)
    {
        using MemoryStream line = new();
        bool isEnd = false;
        for (bool isWhole = false; !isWhole && !isEnd;)
        {
            if (_begin == _end)
            {
                (_begin, _end) = (0, await stream.ReadAsync(_part, ct).ConfigureAwait(false));
                isEnd = _end == 0;
            }

            int length = _part.AsSpan(_begin, _end - _begin).IndexOf((byte)'\n');
            isWhole = length >= 0;
            line.Write(_part, _begin, isWhole ? length : _end - _begin);
            _begin = isWhole ? _begin + length + 1 : _end;
            if (line.Length > EditedLine.LengthMax)
            {
                throw new CliException(
                    $"Line {Number + 1} of standard input is longer than {EditedLine.LengthMax >> 20} MiB.");
            }
        }

        if (isEnd && line.Length == 0)
        {
            return null;
        }

        Number++;
        return TextOf(line.GetBuffer().AsSpan(0, (int)line.Length));
    }

    private string TextOf(ReadOnlySpan<byte> line)
    {
        try
        {
            return s_strict.GetString(line).TrimEnd('\r').TrimStart(Number == 1 ? '\uFEFF' : ' ');
        }
        catch (DecoderFallbackException)
        {
            throw new CliException($"Line {Number} of standard input is not UTF-8 text.");
        }
    }
}
