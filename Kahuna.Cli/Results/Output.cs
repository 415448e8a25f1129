using System.Text;
using Kahuna.Cli.Errors;
using Kahuna.Cli.Terminal;

namespace Kahuna.Cli.Results;

/// <summary>
/// Standard output of one command: records in the form that <c>--output</c> names, or a value alone. It is flushed
/// at the end. Used by one command.
/// </summary>
/// <param name="environment">The streams.</param>
/// <param name="format">The form.</param>
internal sealed class Output(CliEnvironment environment, OutputFormat format)
{
    /// <summary>Columns of a table whose rows come later: an event, most keys, a revision.</summary>
    private const int LiveWidth = 12;

    private static readonly UTF8Encoding s_utf8 = new(encoderShouldEmitUTF8Identifier: false);
    private readonly BufferedStream _stream = new(environment.Streams.Output, 64 * 1024);
    private bool IsTerminal => environment.Streams.IsOutputTerminal;

    /// <summary>The form.</summary>
    public OutputFormat Format => format;

    /// <summary>Each table can replace the one before: the results are for a terminal.</summary>
    public bool ClearsScreen =>
        IsTerminal && format == OutputFormat.Table && environment.Variable("TERM") != "dumb";

    /// <summary>Text for people may have colours.</summary>
    public bool IsColoured => IsTerminal && environment.MayColour;

    /// <summary>Writes one result.</summary>
    /// <param name="record">The result.</param>
    /// <param name="plain">What people see in its place; null: one line for each field.</param>
    public void Write(Record record, string? plain = null)
    {
        if (format != OutputFormat.Table)
        {
            Write(RecordJson.Of(record, format == OutputFormat.Json).Span);
            WriteLine("");
            return;
        }

        if (plain is not null)
        {
            WriteLine(plain);
            return;
        }

        int width = record.Max(static field => RecordText.Heading(field.Key).Length) + 2;
        foreach ((string name, object? value) in record)
        {
            WriteLine(RecordText.Heading(name).ToLowerInvariant().PadRight(width) + RecordText.Of(value));
        }
    }

    /// <summary>Writes a list of results, one by one as they come.</summary>
    /// <param name="columns">The names of the fields.</param>
    /// <param name="records">The results.</param>
    /// <param name="isLive">Each is shown at once.</param>
    /// <returns>How many there were.</returns>
    public async Task<long> WriteAllAsync(
        IReadOnlyList<string> columns, IAsyncEnumerable<Record> records, bool isLive = false)
    {
        TableLines table = new(
            columns, (line, isHeading) => WriteLine(isHeading ? Bold(line) : line), isLive ? LiveWidth : 0);
        long count = 0;
        if (isLive && format == OutputFormat.Table)
        {
            table.Flush();
        }

        await foreach (Record record in records.ConfigureAwait(false))
        {
            count++;
            switch (format)
            {
                case OutputFormat.Table:
                    table.Add(record);
                    break;
                case OutputFormat.Json:
                    Write(s_utf8.GetBytes(count == 1 ? "[\n" : ",\n"));
                    Write(RecordJson.Of(record, isIndented: false).Span);
                    break;
                default:
                    Write(RecordJson.Of(record, isIndented: false).Span);
                    WriteLine("");
                    break;
            }

            if (isLive)
            {
                Flush();
            }
        }

        if (format == OutputFormat.Table)
        {
            table.Flush();
        }
        else if (format == OutputFormat.Json)
        {
            WriteLine(count == 0 ? "[]" : "\n]");
        }

        Flush();
        return count;
    }

    /// <summary>Writes a list that is there.</summary>
    /// <inheritdoc cref="WriteAllAsync(IReadOnlyList{string}, IAsyncEnumerable{Record}, bool)"/>
    public Task<long> WriteAllAsync(IReadOnlyList<string> columns, IEnumerable<Record> records) =>
        WriteAllAsync(columns, records.ToAsyncEnumerable());

    /// <summary>
    /// Writes a value alone: its bytes and nothing else into a file or pipe; on a terminal escaped, as a line.
    /// </summary>
    public void WriteValue(KahunaValue value)
    {
        if (!IsTerminal)
        {
            Write(value.Memory.Span);
            return;
        }

        WriteLine(value.IsNull ? "(null)" : ShownText.LinesOf(value.Memory.Span));
    }

    /// <summary>Writes a line for people, which is escaped already.</summary>
    public void WriteLine(string line) => Write(s_utf8.GetBytes(line + "\n"));

    /// <summary>Empties the screen before a table that replaces the last one; only on a terminal.</summary>
    public void ClearScreen()
    {
        if (ClearsScreen)
        {
            Write("\x1b[H\x1b[2J"u8);
        }
    }

    /// <summary>Heading of a table.</summary>
    public string Bold(string text) => IsColoured ? $"\x1b[1m{text}\x1b[0m" : text;

    /// <summary>Hands everything to the reader.</summary>
    /// <exception cref="OutputClosedException">The reader has gone.</exception>
    public void Flush()
    {
        try
        {
            _stream.Flush();
        }
        catch (IOException failure) when (IsClosed(failure))
        {
            throw new OutputClosedException(failure);
        }
    }

    private void Write(ReadOnlySpan<byte> bytes)
    {
        try
        {
            _stream.Write(bytes);
        }
        catch (IOException failure) when (IsClosed(failure))
        {
            throw new OutputClosedException(failure);
        }
    }

    /// <summary>EPIPE, or ERROR_NO_DATA and ERROR_BROKEN_PIPE of Windows.</summary>
    private static bool IsClosed(IOException failure) => (failure.HResult & 0xFFFF) is 32 or 109 or 232;
}
