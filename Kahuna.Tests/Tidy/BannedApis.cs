using Mono.Cecil;

namespace Kahuna.Tests.Tidy;

/// <summary>
/// A list of what code must not touch. A pattern is a type ("System.DateTime"), a member ("System.Guid::NewGuid", with
/// "::" and the metadata name), an overload (a member with its parameters' types in parentheses), or any with "*" at
/// the end for everything that begins so. Immutable.
/// </summary>
internal sealed class BannedApis(string[] banned, string[] except)
{
    private static readonly string[] s_clocks =
    [
        "System.DateTime", "System.DateTimeOffset", "System.TimeZoneInfo", "System.Diagnostics.Stopwatch",
        "System.Environment::get_TickCount*",
    ];

    private static readonly string[] s_randomness =
    [
        "System.Random", "System.Security.Cryptography.*", "System.Guid::NewGuid", "System.Guid::CreateVersion7",

        // Seeded anew in each process: equal inputs would give different results on two nodes.
        "System.HashCode", "System.String::GetHashCode",
    ];

    private static readonly string[] s_outsideWorld =
    [
        "System.IO.*", "Microsoft.Win32.SafeHandles.*", "System.Net.*", "System.Console", "System.Diagnostics.Process*",
        "System.Environment::*", "System.Runtime.InteropServices.NativeLibrary",
    ];

    private static readonly string[] s_outsideExceptions =
    [
        // Exceptions that only name a kind of error.
        "System.IO.InvalidDataException", "System.IO.EndOfStreamException",

        // Cuts a text; looks at no file.
        "System.IO.Path::GetFileName",

        // The compiler puts the thread's number into every iterator; new lines are a constant here.
        "System.Environment::get_CurrentManagedThreadId",
        "System.Environment::get_NewLine",
        "System.Environment::FailFast",
    ];

    /// <summary>For Raft, State and Primitives: same input, same output, byte for byte, on every node.</summary>
    public static BannedApis Pure { get; } = new(
        [
            .. s_clocks, .. s_randomness, .. s_outsideWorld,
            "System.TimeProvider",
            "System.Threading.*",
            "System.Timers.*",
            "System.ThreadStaticAttribute",
            "System.Runtime.CompilerServices.Async*",
            "Microsoft.Extensions.*",
        ],
        s_outsideExceptions);

    /// <summary>For Partitions: clock, randomness, log, transport and scheduling come through ports.</summary>
    public static BannedApis Owned { get; } = new(
        [
            .. s_clocks, .. s_randomness, .. s_outsideWorld,

            // A TimeProvider that is handed in is the port for the monotonic clock; its wall clock and timers are not
            // for a loop.
            "System.TimeProvider::get_System",
            "System.TimeProvider::GetUtcNow",
            "System.TimeProvider::GetLocalNow",
            "System.TimeProvider::CreateTimer",
            "System.Threading.Tasks.Task::Run",
            "System.Threading.Tasks.Task::Delay",
            "System.Threading.Tasks.TaskFactory*",
            "System.Threading.Tasks.Parallel*",
            "System.Threading.Thread",
            "System.Threading.ThreadPool",
            "System.Threading.Timer",
            "System.Threading.PeriodicTimer",
            "System.Timers.*",
            "System.Threading.CancellationTokenSource::CancelAfter",
        ],
        s_outsideExceptions);

    /// <summary>
    /// For everything else that the simulator runs: asynchronous code is allowed, but only where its time, its timers
    /// and what goes on after an await are given.
    /// </summary>
    public static BannedApis Simulated { get; } = new(
        [
            .. s_clocks,
            "System.Random::.ctor()",
            "System.Random::get_Shared",
            "System.Security.Cryptography.RandomNumberGenerator",
            "System.Guid::NewGuid",
            "System.Guid::CreateVersion7",
            "System.HashCode", "System.String::GetHashCode",
            "System.TimeProvider::get_System",
            "System.Threading.Tasks.Task::Run",
            "System.Threading.Tasks.TaskFactory*",
            "System.Threading.Tasks.Parallel*",
            "System.Threading.Tasks.Task::Delay(System.TimeSpan)", "System.Threading.Tasks.Task::Delay(System.Int32)",
            "System.Threading.Tasks.Task::Delay(System.TimeSpan,System.Threading.CancellationToken)",
            "System.Threading.Tasks.Task::Delay(System.Int32,System.Threading.CancellationToken)",
            "System.Threading.Tasks.Task::WaitAsync(System.TimeSpan)",
            "System.Threading.Tasks.Task::WaitAsync(System.TimeSpan,System.Threading.CancellationToken)",
            "System.Threading.CancellationTokenSource::.ctor(System.TimeSpan)",
            "System.Threading.CancellationTokenSource::.ctor(System.Int32)",
            "System.Threading.CancellationTokenSource::CancelAfter",
            "System.Threading.Thread",
            "System.Threading.ThreadPool",
            "System.Threading.Timer",
            "System.Threading.PeriodicTimer",
            "System.Timers.*",
            "System.Net.*", "System.Console", "System.Diagnostics.Process*",
        ],
        [.. s_outsideExceptions, "System.Threading.Timeout*"]);

    public IEnumerable<string> Violations(TypeDefinition type) =>
        CodeReferences.Of(type).Where(IsBanned).Select(reference => reference.ToString()).Distinct();

    private bool IsBanned(CodeReference reference)
    {
        string type = reference.Outermost.FullName;
        string? member = reference.Member is null ? null : $"{type}::{reference.Member}";
        string? overload = member is null ? null : $"{member}({reference.Parameters})";
        bool Matches(string pattern) =>
            pattern.EndsWith('*')
                ? (pattern.Contains("::", StringComparison.Ordinal) ? member : type)?.StartsWith(
                    pattern[..^1], StringComparison.Ordinal)
                    == true
                : type == pattern || member == pattern || overload == pattern;
        return banned.Any(Matches) && !except.Any(Matches);
    }
}
