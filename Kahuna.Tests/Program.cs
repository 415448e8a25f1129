using Kahuna.Tests.Simulation;

// The test project is a program, too: what the scripts run beside the tests.
Dictionary<string, Func<string[], int>> commands = new()
{
    ["sim"] = arguments => SimCommand.Run(arguments, Console.Out, Console.Error),
};

if (args.Length > 0 && commands.TryGetValue(args[0], out Func<string[], int>? command))
{
    return command(args[1..]);
}

Console.Error.WriteLine($"commands: {string.Join(", ", commands.Keys)}");
return 2;
