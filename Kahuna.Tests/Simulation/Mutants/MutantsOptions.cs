using System.Globalization;

namespace Kahuna.Tests.Simulation.Mutants;

/// <summary>The command line of <c>scripts/mutants.sh</c>. Immutable.</summary>
internal sealed record MutantsOptions
{
    /// <summary>How often each bug is sought, each time with the seeds behind those of the time before.</summary>
    public int Tries { get; private init; } = 1;

    /// <summary>The seeds after which a try gives up.</summary>
    public int Most { get; private init; } = 2000;

    /// <summary>Virtual seconds per seed.</summary>
    public int Seconds { get; private init; } = 60;

    /// <summary>The first seed of the first try.</summary>
    public int From { get; private init; } = 1;

    /// <summary>
    /// How many of the quickly found bugs are chosen, others with every commit; 0: all that are named.
    /// </summary>
    public int Some { get; private init; }

    /// <summary>The file to which a row of a Markdown table is added for each bug; null: none.</summary>
    public string? Table { get; private init; }

    /// <summary>An empty directory for copies of the source.</summary>
    public string? Work { get; private init; }

    public IReadOnlyList<string> Names { get; private init; } = [];

    /// <summary>Reads the arguments; null, with a sentence, when they are wrong.</summary>
    public static MutantsOptions? Parse(ReadOnlySpan<string> args, out string? error)
    {
        MutantsOptions options = new();
        error = null;
        while (args.Length > 0 && error is null)
        {
            int number = 0;
            bool isNumber = args.Length > 1
                && int.TryParse(args[1], NumberStyles.None, CultureInfo.InvariantCulture, out number)
                && number > 0;
            MutantsOptions? next = args[0] switch
            {
                "--tries" when isNumber => options with { Tries = number },
                "--most" when isNumber => options with { Most = number },
                "--seconds" when isNumber => options with { Seconds = number },
                "--from" when isNumber => options with { From = number },
                "--some" when isNumber => options with { Some = number },
                "--table" when args.Length > 1 => options with { Table = args[1] },
                "--work" when args.Length > 1 => options with { Work = args[1] },
                string name when MutantFolder.Names.Contains(name) => options with { Names = [.. options.Names, name] },
                _ => null,
            };
            error = next is null ? $"{args[0]} is no planted bug and no option with a value" : null;
            options = next ?? options;
            args = args[(args[0].StartsWith('-') ? Math.Min(2, args.Length) : 1)..];
        }

        error ??= options.Work is null ? "--work is missing" : null;
        return error is null ? options : null;
    }
}
