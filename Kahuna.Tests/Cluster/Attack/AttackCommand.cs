using System.Globalization;
using Kahuna.Tests.Cluster.Soak;

namespace Kahuna.Tests.Cluster.Attack;

/// <summary>
/// The commands <c>attack</c>, which scripts/attack.sh runs, and <c>attackers</c>, which it starts as a process of its
/// own. Both return 0 when nothing is wrong, 1 when something is, and 2 for bad usage. Stateless; any thread.
/// </summary>
internal static class AttackCommand
{
    private const string Usage = "usage: attack [--minutes M] [--only KIND,KIND]; scripts/attack.sh --help tells more";

    /// <summary>Every kind of hostile client, by the name that <c>--only</c> takes.</summary>
    private static readonly Dictionary<string, Func<Attacker>> s_kinds = new(StringComparer.Ordinal)
    {
        ["hello-bytes"] = static () => new HelloBytesAttacker(),
        ["connections"] = static () => new ConnectionFloodAttacker(),
        ["slow-reader"] = static () => new SlowReaderAttacker(),
        ["colliding-keys"] = static () => new CollidingKeysAttacker(),
        ["fenced-writes"] = static () => new FencedWritesAttacker(),
        ["observers"] = static () => new ObserversAttacker(),
        ["keyed-calls"] = static () => new KeyedCallsAttacker(),
        ["sessions"] = static () => new SessionsAttacker(),
        ["broken-frames"] = static () => new BrokenFramesAttacker(),
        ["crowd"] = static () => new CrowdAttacker(),
        ["rapid-reset"] = static () => new RapidResetAttacker(),
        ["watchers"] = static () => new WatchersAttacker(),
        ["bad-text"] = static () => new BadTextAttacker(),
    };

    public static int Run(string[] arguments, TextWriter output, TextWriter errors)
    {
        double minutes = 10;
        string kinds = string.Join(',', s_kinds.Keys);
        for (int i = 0; i < arguments.Length; i += 2)
        {
            string value = i + 1 < arguments.Length ? arguments[i + 1] : "";
            string? wrong = arguments[i] switch
            {
                "--minutes" =>
                    double.TryParse(value, NumberStyles.AllowDecimalPoint, CultureInfo.InvariantCulture, out minutes)
                        && minutes is > 0 and <= 10_000
                    ? null
                    : "--minutes needs a number above 0, at most 10000",
                "--only" =>
                    (kinds = value).Split(',').All(s_kinds.ContainsKey)
                        ? null
                        : $"--only needs kinds of attackers, separated by commas, of {string.Join(", ", s_kinds.Keys)}",
                _ => $"unknown option {arguments[i]}",
            };
            if (wrong is not null)
            {
                errors.WriteLine($"attack: {wrong}");
                errors.WriteLine(Usage);
                return 2;
            }
        }

        try
        {
            string done = new AttackRun(TimeSpan.FromMinutes(minutes), kinds, new WriterOutput(output))
                .RunAsync()
                .GetAwaiter()
                .GetResult();
            output.WriteLine($"clean: {done}");
            return 0;
        }
        catch (Exception wrong)
        {
            output.WriteLine();
            output.WriteLine(
                $"WRONG: {(wrong is SoakException or TimeoutException ? wrong.Message : wrong.ToString())}");
            return 1;
        }
    }

    /// <summary>
    /// Arguments: the nodes' addresses and the kinds of attackers, each separated by commas. Attacks until standard
    /// input ends, then says how often each did.
    /// </summary>
    public static int RunAttackers(string[] arguments, TextWriter output, TextWriter errors)
    {
        if (arguments.Length != 2
            || !arguments[0].Split(',').All(static text => Uri.TryCreate(text, UriKind.Absolute, out _))
            || !arguments[1].Split(',').All(s_kinds.ContainsKey))
        {
            errors.WriteLine(
                "attackers: needs the nodes' addresses and the kinds of attackers, each separated by commas");
            return 2;
        }

        AttackTarget target = new([.. arguments[0].Split(',').Select(static text => new Uri(text))]);
        Attacker[] attackers = [.. arguments[1].Split(',').Select(static kind => s_kinds[kind]())];
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
