using Kahuna.Tests.Access.Hostile;
using Kahuna.Tests.Cluster.Attack;
using Kahuna.Tests.Cluster.Soak;
using Kahuna.Tests.Linearizability;
using Kahuna.Tests.Simulation;
using Kahuna.Tests.Simulation.Mutants;
using Kahuna.Tests.Tools;
using Kahuna.Tests.Tools.Paths;
using Kahuna.Tests.Traces;

// What can be run from this assembly besides its tests, by name; scripts in scripts/ run them.
Dictionary<string, Func<string[], int>> commands = new(StringComparer.Ordinal)
{
    ["attack"] = arguments => AttackCommand.Run(arguments, Console.Out, Console.Error),
    ["attackers"] = arguments => AttackCommand.RunAttackers(arguments, Console.Out, Console.Error),
    ["check-history"] = arguments => CheckHistoryCommand.Run(arguments, Console.Out, Console.Error),
    ["check-traces"] = arguments => CheckTracesCommand.Run(arguments, Console.Out, Console.Error),
    ["heap"] = arguments => HeapCommand.Run(arguments, Console.Out, Console.Error),
    ["hostile"] = arguments => HostileCommand.Run(arguments, Console.Out, Console.Error),
    ["measure"] = arguments => MeasureCommand.Run(arguments, Console.Out, Console.Error),
    ["mutants"] = arguments => MutantsCommand.Run(arguments, Console.Out, Console.Error),
    ["mutate"] = arguments => MutateCommand.Run(arguments, Console.Out, Console.Error),
    ["path"] = arguments => PathCommand.Run(arguments, Console.Out, Console.Error),
    ["sim"] = arguments => SimCommand.Run(arguments, Console.Out, Console.Error),
    ["soak"] = arguments => SoakCommand.Run(arguments, Console.Out, Console.Error),
};

if (args.Length > 0 && commands.TryGetValue(args[0], out Func<string[], int>? command))
{
    return command(args[1..]);
}

Console.Error.WriteLine(
    $"Kahuna.Tests: the first argument must be one of: {string.Join(", ", commands.Keys)}; "
        + $"the tests run with dotnet test");
return 2;
