using System.Globalization;
using Kahuna.Tests.Cluster.Soak;

namespace Kahuna.Tests.Cluster.Attack;

/// <summary>
/// The commands <c>attack</c>, which scripts/attack.sh runs, and <c>attackers</c>, which it starts as a process of its own. Both return 0 when nothing is wrong, 1 when something is,
/// and 2 for bad usage. Stateless; any thread.
/// </summary>
internal static class AttackCommand
{
    private const string Usage = "usage: attack [--minutes M]; scripts/attack.sh --help tells more";

    public static int Run(string[] arguments, TextWriter output, TextWriter errors)
    {
        double minutes = 10;
        bool isGood = arguments.Length == 0
            || (arguments.Length == 2 && arguments[0] == "--minutes" && double.TryParse(arguments[1], NumberStyles.AllowDecimalPoint, CultureInfo.InvariantCulture, out minutes) && minutes is > 0 and <= 10_000);
        if (!isGood)
        {
            errors.WriteLine("attack: --minutes needs a number above 0, at most 10000");
            errors.WriteLine(Usage);
            return 2;
        }

        try
        {
            string done = new AttackRun(TimeSpan.FromMinutes(minutes), new WriterOutput(output)).RunAsync().GetAwaiter().GetResult();
            output.WriteLine($"clean: {done}");
            return 0;
        }
        catch (Exception wrong)
        {
            output.WriteLine();
            output.WriteLine($"WRONG: {(wrong is SoakException or TimeoutException ? wrong.Message : wrong.ToString())}");
            return 1;
        }
    }

    /// <summary>Arguments: the nodes' addresses, separated by commas. Attacks until standard input ends, then says how often each did.</summary>
    public static int RunAttackers(string[] arguments, TextWriter output, TextWriter errors)
    {
        if (arguments.Length != 1 || !arguments[0].Split(',').All(static text => Uri.TryCreate(text, UriKind.Absolute, out _)))
        {
            errors.WriteLine("attackers: needs the nodes' addresses, separated by commas");
            return 2;
        }

        AttackTarget target = new([.. arguments[0].Split(',').Select(static text => new Uri(text))]);
        Attacker[] attackers =
        [
            new HelloBytesAttacker(),
            new ConnectionFloodAttacker(),
            new SlowReaderAttacker(),
            new CollidingKeysAttacker(),
            new FencedWritesAttacker(),
            new ObserversAttacker(),
            new KeyedCallsAttacker(),
            new SessionsAttacker(),
            new BrokenFramesAttacker(),
            new CrowdAttacker(),
            new RapidResetAttacker(),
            new WatchersAttacker(),
            new BadTextAttacker(),
        ];
        using CancellationTokenSource end = new();
        Task[] running = [.. attackers.Select(attacker => Task.Run(() => attacker.RunAsync(target, end.Token)))];
        Console.In.ReadToEnd();
        end.Cancel();
        Task.WaitAll(running);
        foreach (Attacker attacker in attackers)
        {
            output.WriteLine(attacker.ToString());
        }

        return attackers.All(static attacker => attacker.HasAttacked) ? 0 : 1;
    }
}
