using System.Globalization;

namespace Kahuna.Tests.Tools.Cost;

/// <summary>Reads what <c>strace -f -e raw=all</c> has written of one process. Pure.</summary>
internal static class CallLog
{
    private const string Unfinished = " <unfinished ...>";

    /// <summary>What a system call is counted as; the others by their names.</summary>
    private static readonly Dictionary<string, string> s_kinds = new(StringComparer.Ordinal)
    {
        ["recvfrom"] = "receive",
        ["recvmsg"] = "receive",
        ["sendto"] = "send",
        ["sendmsg"] = "send",
        ["epoll_wait"] = "wait for sockets",
        ["epoll_pwait"] = "wait for sockets",
        ["poll"] = "wait for sockets",
        ["ppoll"] = "wait for sockets",
        ["pwrite64"] = "write to disk",
        ["pwritev"] = "write to disk",
        ["pwritev2"] = "write to disk",
        ["fdatasync"] = "sync",
        ["fsync"] = "sync",
        ["sched_yield"] = "yield",
        ["clock_nanosleep"] = "sleep",
        ["nanosleep"] = "sleep",
    };

    /// <summary>Counts the calls by kind of thread and kind of call.</summary>
    /// <param name="lines">The file.</param>
    /// <param name="kindOf">The kind of the thread with a number.</param>
    public static Dictionary<CallKind, CallCount> Count(IEnumerable<string> lines, Func<int, string> kindOf)
    {
        Dictionary<CallKind, CallCount> counts = [];
        Dictionary<int, string> begun = [];
        foreach (string line in lines)
        {
            int space = line.IndexOf(' ', StringComparison.Ordinal);
            if (space < 0 || !int.TryParse(line.AsSpan(0, space), out int thread))
            {
                continue;
            }

            string call = line[space..].TrimStart();
            if (call.EndsWith(Unfinished, StringComparison.Ordinal))
            {
                begun[thread] = call[..^Unfinished.Length];
                continue;
            }

            if (call.StartsWith("<... ", StringComparison.Ordinal))
            {
                // The beginning of the first call of a thread may be missing.
                int at = call.IndexOf(" resumed>", StringComparison.Ordinal);
                if (at < 0 || !begun.Remove(thread, out string? start))
                {
                    continue;
                }

                call = start + call[(at + " resumed>".Length)..];
            }

            if (Read(call) is { } read)
            {
                CallKind kind = new(kindOf(thread), read.Kind);
                counts[kind] = counts.GetValueOrDefault(kind) + new CallCount(1, read.Bytes);
            }
        }

        return counts;
    }

    private static (string Kind, long Bytes)? Read(string call)
    {
        int open = call.IndexOf('(', StringComparison.Ordinal);
        int result = call.LastIndexOf(" = ", StringComparison.Ordinal);
        if (open <= 0 || result < open)
        {
            return null;
        }

        string name = call[..open];
        string[] arguments = call[(open + 1)..result].Split(", ");
        string kind = name == "futex" ? FutexKind(arguments) : s_kinds.GetValueOrDefault(name, name);
        bool isPeek = kind == "receive" && arguments is [_, _, "0x1", ..];
        return (isPeek ? "look whether there is more" : kind, kind switch
        {
            "receive" or "send" or "write to disk" => Math.Max(0, Hexadecimal(call[(result + 3)..])),
            _ => 0,
        });
    }

    private static string FutexKind(string[] arguments)
    {
        const int Command = 0x7F;
        const int Wait = 0;
        const int WaitBitset = 9;
        return arguments.Length > 1 && (Hexadecimal(arguments[1]) & Command) is Wait or WaitBitset
            ? "futex wait" : "futex wake";
    }

    private static long Hexadecimal(string text)
    {
        string number = text.Split([' ', ')'])[0];
        return number.StartsWith("0x", StringComparison.Ordinal)
            && long.TryParse(number.AsSpan(2), NumberStyles.HexNumber, CultureInfo.InvariantCulture, out long value)
            ? value : long.TryParse(number, CultureInfo.InvariantCulture, out value) ? value : -1;
    }
}

/// <summary>Calls of one kind by threads of one kind. Immutable.</summary>
internal readonly record struct CallKind(string Threads, string Call);

/// <summary>How many calls, and how many bytes they moved together. Immutable.</summary>
internal readonly record struct CallCount(long Calls, long Bytes)
{
    public static CallCount operator +(CallCount x, CallCount y) => new(x.Calls + y.Calls, x.Bytes + y.Bytes);
}
