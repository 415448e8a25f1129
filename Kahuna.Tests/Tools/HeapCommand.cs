using System.Globalization;
using Kahuna.Tests.Api.Watches;
using Kahuna.Tests.Client.Watches;
using Kahuna.Tests.Partitions.Requests;
using Kahuna.Tests.Tools.Processes;

namespace Kahuna.Tests.Tools;

/// <summary>
/// <c>heap NAME</c>: makes many things in a process of their own and prints the bytes of the heap that they hold. In
/// the process of the tests, what others let go meanwhile would count too. Stateless.
/// </summary>
internal static class HeapCommand
{
    private static readonly Dictionary<string, Func<Task<long>>> s_contents = new(StringComparer.Ordinal)
    {
        [WatchMemoryTests.Content] = WatchMemoryTests.HoldAsync,
        [WatchReaderMemoryTests.Content] = () => Task.FromResult(WatchReaderMemoryTests.Hold()),
        [LockFootprintTests.Content] = () => Task.FromResult(LockFootprintTests.Hold()),
    };

    /// <returns>0: printed; 2: bad usage. A failure inside ends the process.</returns>
    public static int Run(string[] args, TextWriter output, TextWriter errors)
    {
        if (args.Length != 1 || !s_contents.TryGetValue(args[0], out Func<Task<long>>? hold))
        {
            errors.WriteLine($"heap: the only argument must be one of: {string.Join(", ", s_contents.Keys)}");
            return 2;
        }

        output.WriteLine(hold().GetAwaiter().GetResult().ToString(CultureInfo.InvariantCulture));
        return 0;
    }

    /// <summary>Runs the command in its own process.</summary>
    /// <param name="content">A name of the command.</param>
    /// <returns>Bytes that the content holds.</returns>
    /// <exception cref="MeasureException">The process failed; the message has what it wrote.</exception>
    public static long InOwnProcess(string content)
    {
        string printed = Child.Read("dotnet", typeof(HeapCommand).Assembly.Location, "heap", content);
        return long.Parse(printed, CultureInfo.InvariantCulture);
    }

    /// <summary>Bytes of the heap that are reachable now.</summary>
    public static long Live()
    {
        for (int i = 0; i < 3; i++)
        {
            GC.Collect();
            GC.WaitForPendingFinalizers();
        }

        return GC.GetTotalMemory(forceFullCollection: true);
    }
}
