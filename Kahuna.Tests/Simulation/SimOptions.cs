using System.Globalization;

namespace Kahuna.Tests.Simulation;

/// <summary>The command line of <c>scripts/sim.sh</c>. Immutable.</summary>
internal sealed record SimOptions
{
    public const string Usage = "Usage: scripts/sim.sh [options]; scripts/sim.sh --help names them";

    public ulong First { get; private set; } = 1;

    public ulong Last { get; private set; } = 100;

    public double Seconds { get; private set; } = 120;

    public int Jobs { get; private set; } = Environment.ProcessorCount;

    public double Hours { get; private set; }

    public string? TracePath { get; private set; }

    public bool Minimize { get; private set; }

    /// <summary>The numbers of the only faults to happen; null: all that the seed draws.</summary>
    public IReadOnlySet<int>? Only { get; private set; }

    /// <summary>Ends when so many seeds have broken a rule.</summary>
    public int ViolationsMax { get; private set; } = int.MaxValue;

    public string? JsonPath { get; private set; }

    /// <summary>
    /// The planted bug that is built in, as the script says; null: none. Only for the lines that replay.
    /// </summary>
    public string? Mutant { get; private set; }

    /// <summary>Reads the arguments; null, with a sentence, when they are no use.</summary>
    public static SimOptions? Parse(string[] args, out string? error)
    {
        SimOptions options = new();
        error = null;
        bool single = false;
        for (int i = 0; i < args.Length && error is null; i++)
        {
            string name = args[i];
            if (name == "--minimize")
            {
                options.Minimize = true;
                continue;
            }

            string? value = i + 1 < args.Length ? args[++i] : null;
            single |= name == "--seed";
            error = value is null ? $"{name} needs a value" : options.Take(name, value);
        }

        if (error is null && !single && (options.TracePath ?? (object?)options.Only) is not null)
        {
            error = options.TracePath is not null ? "--trace needs --seed" : "--only needs --seed";
        }

        return error is null ? options : null;
    }

    private string? Take(string name, string value)
    {
        CultureInfo culture = CultureInfo.InvariantCulture;
        switch (name)
        {
            case "--seeds":
                string[] parts = value.Split("..");
                if (parts.Length != 2
                    || !ulong.TryParse(parts[0], NumberStyles.None, culture, out ulong first)
                    || !ulong.TryParse(parts[1], NumberStyles.None, culture, out ulong last)
                    || last < first)
                {
                    return "--seeds needs two numbers, the second not below the first, as in 1..500";
                }

                (First, Last) = (first, last);
                return null;
            case "--seed":
                if (!ulong.TryParse(value, NumberStyles.None, culture, out ulong seed))
                {
                    return "--seed needs a whole number";
                }

                (First, Last) = (seed, seed);
                return null;
            case "--seconds":
                if (!double.TryParse(value, NumberStyles.AllowDecimalPoint, culture, out double seconds)
                    || seconds is < 1 or > 100_000)
                {
                    return "--seconds needs a number from 1 to 100000";
                }

                Seconds = seconds;
                return null;
            case "--only":
                string[] numbers = value == "none" ? [] : value.Split(',');
                if (numbers.Any(number => !int.TryParse(number, NumberStyles.None, culture, out _)))
                {
                    return "--only needs the numbers of faults, as in 3,17, or none";
                }

                Only = numbers.Select(number => int.Parse(number, culture)).ToHashSet();
                return null;
            case "--jobs":
                if (!int.TryParse(value, NumberStyles.None, culture, out int jobs) || jobs is < 1 or > 256)
                {
                    return "--jobs needs a number from 1 to 256";
                }

                Jobs = jobs;
                return null;
            case "--violations":
                if (!int.TryParse(value, NumberStyles.None, culture, out int violations) || violations < 1)
                {
                    return "--violations needs a whole number from 1 on";
                }

                ViolationsMax = violations;
                return null;
            case "--hours":
                if (!double.TryParse(value, NumberStyles.AllowDecimalPoint, culture, out double hours)
                    || hours is <= 0 or > 10_000)
                {
                    return "--hours needs a number above 0";
                }

                Hours = hours;
                return null;
            case "--trace":
                TracePath = value;
                return null;
            case "--mutant":
                Mutant = value;
                return null;
            case "--json":
                JsonPath = value;
                return null;
            default:
                return $"unknown option {name}";
        }
    }
}
