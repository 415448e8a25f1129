using System.Globalization;
using System.Text.Encodings.Web;
using System.Text.Json;
using System.Threading.Channels;
using Kahuna.Server.Access;
using Kahuna.Server.Api.RateLimits;
using Kahuna.Server.Partitions.Ports;

namespace Kahuna.Server.Hosting;

/// <summary>
/// The audit log of a node: a JSON object per line in files of its own, or events of the node's log. One thread writes;
/// a slow or full disk costs lines, never time, and the next line tells how many. Owned by the node; any thread.
/// </summary>
internal sealed class AuditLog : IAuditLog, IDisposable
{
    /// <summary>Refusals that are recorded per second; above it they are counted.</summary>
    public const int RefusalsPerSecond = 100;

    /// <summary>Lines that wait for the disk; some 2 MB.</summary>
    private const int WaitingMax = 8192;

    /// <summary>Of a subject; the longest name is longer, and the rest of it is left out.</summary>
    private const int SubjectCharactersMax = 1024;

    private static readonly TimeSpan s_endLimit = TimeSpan.FromSeconds(2);

    private readonly TimeProvider _time;
    private readonly Action<ReadOnlyMemory<byte>>? _append;
    private readonly ILogger _log;
    private readonly Lock _lock = new();
    private readonly TokenBucket _refusals;
    private readonly Channel<Entry> _waiting = Channel.CreateBounded<Entry>(
        new BoundedChannelOptions(WaitingMax) { SingleReader = true });

    private readonly Thread _writer;
    private long _dropped;
    private long _suppressed;
    private bool _hasFailed;

    /// <summary>Starts the writer.</summary>
    /// <param name="append">Appends a line to the file and throws an <see cref="IOException"/> if it cannot; null:
    /// lines become events of the log.</param>
    /// <param name="log">The node's log.</param>
    /// <param name="time">The clock.</param>
    public AuditLog(Action<ReadOnlyMemory<byte>>? append, ILogger log, TimeProvider time)
    {
        (_append, _log, _time) = (append, log, time);
        _refusals = new TokenBucket(new RateLimit(RefusalsPerSecond, RefusalsPerSecond), time.Now());
        _writer = new Thread(Run) { IsBackground = true, Name = "Kahuna audit log" };
        _writer.Start();
    }

    public void Write(Caller caller, string action, string subject, string result)
    {
        if (AuditResults.IsRefused(result))
        {
            lock (_lock)
            {
                if (!_refusals.TryTake(_time.Now()))
                {
                    Interlocked.Increment(ref _suppressed);
                    return;
                }
            }
        }

        if (!_waiting.Writer.TryWrite(new Entry(_time.GetUtcNow(), caller, action, Cut(subject), result)))
        {
            Interlocked.Increment(ref _dropped);
        }
    }

    /// <summary>Writes what waits, for a while, and ends the writer.</summary>
    public void Dispose()
    {
        _waiting.Writer.TryComplete();
        _writer.Join(s_endLimit);
    }

    private void Run()
    {
        while (_waiting.Reader.WaitToReadAsync().AsTask().GetAwaiter().GetResult())
        {
            while (_waiting.Reader.TryRead(out Entry? entry))
            {
                WriteOne(entry);
            }
        }
    }

    private void WriteOne(Entry entry)
    {
        long dropped = Interlocked.Exchange(ref _dropped, 0);
        long suppressed = Interlocked.Exchange(ref _suppressed, 0);
        try
        {
            if (_append is null)
            {
                WriteToLog(entry, dropped, suppressed);
                return;
            }

            _append(Line(entry, dropped, suppressed));
            _hasFailed = false;
        }
        catch (Exception error) when (error is not OutOfMemoryException)
        {
            // Also what nobody expects: an exception on a thread of its own would end the process.
            Interlocked.Add(ref _dropped, dropped + 1);
            Interlocked.Add(ref _suppressed, suppressed);
            if (!_hasFailed)
            {
                _hasFailed = true;
                _log.AuditLogFailed(error.Message);
            }
        }
    }

    private void WriteToLog(Entry entry, long dropped, long suppressed)
    {
        string user = QuotedPartOf(entry.Caller.Name);
        string method = MethodOf(entry.Caller);
        string address = entry.Caller.Address;
        string action = entry.Action;
        string subject = QuotedPartOf(entry.Subject);
        string result = OneLineOf(entry.Result);
        _log.Audit(
            $"Audit: '{user}' ({method}, {address}): {action} '{subject}': {result} ({dropped} dropped and "
                + $"{suppressed} suppressed before this line)");
    }

    /// <summary>
    /// A line of the file. Everything but ASCII is escaped, so that no name can end it or imitate another.
    /// </summary>
    private static ReadOnlyMemory<byte> Line(Entry entry, long dropped, long suppressed)
    {
        using MemoryStream stream = new();
        using (Utf8JsonWriter json = new(stream))
        {
            json.WriteStartObject();
            json.WriteString("time", entry.Time.UtcDateTime);
            json.WriteString("user", entry.Caller.Name);
            json.WriteNumber("userId", entry.Caller.UserId);
            json.WriteString("method", MethodOf(entry.Caller));
            json.WriteString("address", entry.Caller.Address);
            json.WriteString("action", entry.Action);
            json.WriteString("subject", entry.Subject);
            json.WriteString("result", entry.Result);
            if (dropped > 0)
            {
                json.WriteNumber("dropped", dropped);
            }

            if (suppressed > 0)
            {
                json.WriteNumber("suppressed", suppressed);
            }

            json.WriteEndObject();
        }

        stream.WriteByte((byte)'\n');
        return stream.ToArray();
    }

    private static string MethodOf(Caller caller) => caller.Method switch
    {
        CallerMethod.Node => "node",
        CallerMethod.Password => "password",
        CallerMethod.Token => "token",
        CallerMethod.Certificate => "certificate",
        CallerMethod.Jwt => "jwt",
        _ => "none",
    };

    /// <summary>Not between the two halves of a character.</summary>
    private static string Cut(string text) => text.Length <= SubjectCharactersMax
        ? text
        : text[..(SubjectCharactersMax - (char.IsHighSurrogate(text[SubjectCharactersMax - 1]) ? 1 : 0))] + "…";

    /// <summary>
    /// A name between quotes of the log's text form: escaped if it could end the line or the quotes, or if a terminal
    /// could show it as something else. Never throws, whatever the name has.
    /// </summary>
    private static string QuotedPartOf(string text) =>
        text.All(static character => IsPlain(character) && character is not ('\'' or '\\'))
            ? text
            : JavaScriptEncoder.Default.Encode(text);

    private static string OneLineOf(string text) =>
        text.All(IsPlain) ? text : JavaScriptEncoder.Default.Encode(text);

    private static bool IsPlain(char character) => char.GetUnicodeCategory(character)
        is not (UnicodeCategory.Control
            or UnicodeCategory.Format
            or UnicodeCategory.LineSeparator
            or UnicodeCategory.ParagraphSeparator
            or UnicodeCategory.Surrogate
            or UnicodeCategory.PrivateUse
            or UnicodeCategory.OtherNotAssigned);

    private sealed record Entry(DateTimeOffset Time, Caller Caller, string Action, string Subject, string Result);
}
