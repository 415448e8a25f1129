using System.Diagnostics;
using System.Globalization;
using System.Text.Json;
using System.Text.RegularExpressions;
using Kahuna.Tests.Tidy;

namespace Kahuna.Tests.Simulation.Mutants;

/// <summary>
/// <c>mutants</c>: builds planted bugs and counts the seeds until the simulator finds each. Used once; one thread.
/// </summary>
internal sealed partial class MutantsCommand
{
    /// <summary>Bugs that never took more seeds than this are chosen from.</summary>
    private const int QuickSeedsMax = 40;

    private readonly MutantsOptions _options;
    private readonly MutantBuild _build;

    private MutantsCommand(MutantsOptions options)
    {
        _options = options;
        _build = new MutantBuild(options.Work!);
    }

    /// <returns>0: every try found its bug; 1: some did not; 2: bad usage.</returns>
    public static int Run(string[] args, TextWriter output, TextWriter errors)
    {
        // Replays of a seed: mutants --run NAME --work DIR, and then the arguments of sim.
        if (args is ["--run", string name, "--work", string work, ..])
        {
            MutantBuild build = new(work);
            string? wrong = build.Build(name);
            errors.Write(wrong is null ? "" : wrong + Environment.NewLine);
            return wrong is null ? build.Run(["sim", "--mutant", name, .. args[4..]], quiet: false) : 1;
        }

        if (MutantsOptions.Parse(args, out string? error) is not { } options)
        {
            errors.WriteLine($"mutants.sh: {error}");
            return 2;
        }

        IReadOnlyList<string> names =
            options.Some > 0 ? Choose(options.Some) : options.Names.Count > 0 ? options.Names : MutantFolder.Names;
        MutantsCommand command = new(options);
        int missed = names.Count(one => !command.Find(one, output, errors));
        if (missed > 0)
        {
            errors.WriteLine($"mutants.sh: {missed} of {names.Count} were not found in every try");
        }

        return missed > 0 ? 1 : 0;
    }

    /// <summary>
    /// Some of those that take few seeds by the table in docs/simulation.md, others with every commit.
    /// </summary>
    private static string[] Choose(int count)
    {
        string[] quick =
        [
            .. Repository.Lines("docs/simulation.md").Select(static line => TableRow().Match(line))
                .Where(static row =>
                    row.Success && int.Parse(row.Groups[2].Value, CultureInfo.InvariantCulture) <= QuickSeedsMax)
                .Select(static row => row.Groups[1].Value)
                .Where(MutantFolder.Names.Contains),
        ];
        return [.. Enumerable.Range(0, count).Select(i => quick[((Commits() * count) + i) % quick.Length])];
    }

    /// <summary>The number of commits; outside of a clone the day of the year.</summary>
    private static int Commits()
    {
        ProcessStartInfo start = new("git", ["-C", Repository.Root, "rev-list", "--count", "HEAD"])
        {
            RedirectStandardOutput = true,
            RedirectStandardError = true,
        };
        using Process git = Process.Start(start)!;
        string count = git.StandardOutput.ReadToEnd();
        git.WaitForExit();
        return int.TryParse(count, out int commits) ? commits : DateTime.UtcNow.DayOfYear;
    }

    /// <summary>Builds a bug, looks for it and prints a row about it; false when a try did not find it.</summary>
    private bool Find(string name, TextWriter output, TextWriter errors)
    {
        if (_build.Build(name) is { } wrong)
        {
            errors.WriteLine(wrong);
            return false;
        }

        List<(int Seeds, string Rule)> found = Look();
        int[] seeds = [.. found.Select(static one => one.Seeds).Order()];
        IEnumerable<string> rules = found.GroupBy(static one => one.Rule)
            .OrderByDescending(static rule => rule.Count())
            .Select(static rule => rule.Key)
            .DefaultIfEmpty("**not found**")
            .Take(2);
        bool isFound = seeds.Length == _options.Tries;
        string median = seeds.Length == 0
            ? "-"
            : Math.Round((seeds[(seeds.Length - 1) / 2] + seeds[seeds.Length / 2]) / 2.0)
                .ToString(CultureInfo.InvariantCulture);
        string row = string.Create(CultureInfo.InvariantCulture,
            $"| {name} | {string.Join(", ", rules)} | {median} | "
                + $"{(isFound ? seeds[^1] : "**not found**")} | {_options.Tries} |");
        output.WriteLine(row);
        if (_options.Table is { } table)
        {
            File.AppendAllText(table, row + Environment.NewLine);
        }

        return isFound;
    }

    /// <summary>
    /// The seeds that each try took, and the rule that was broken. Each try begins with the seed behind the one that
    /// ended the try before. Stops at a try that gives up.
    /// </summary>
    private List<(int Seeds, string Rule)> Look()
    {
        List<(int Seeds, string Rule)> found = [];
        string json = Path.Combine(_options.Work!, "found.json");
        long next = _options.From;
        while (found.Count < _options.Tries)
        {
            File.Delete(json);
            int left = _options.Tries - found.Count;
            FormattableString seeds = $"sim --seeds {next}..{next + _options.Most - 1}";
            FormattableString rest = $"--seconds {_options.Seconds} --violations {left} --json";
            string[] arguments =
            [
                .. FormattableString.Invariant(seeds).Split(' '),
                .. FormattableString.Invariant(rest).Split(' '),
                json,
            ];
            _build.Run(arguments, quiet: true);
            using JsonDocument summary = JsonDocument.Parse(File.ReadAllText(json));
            JsonElement[] violations = [.. summary.RootElement.GetProperty("violations").EnumerateArray().Take(left)];
            if (violations.Length == 0)
            {
                break;
            }

            foreach (JsonElement violation in violations)
            {
                long seed = violation.GetProperty("seed").GetInt64();
                found.Add(((int)(seed - next + 1), violation.GetProperty("rule").GetString()!));
                next = seed + 1;
            }
        }

        return found;
    }

    [GeneratedRegex(@"^\| ([a-z0-9-]+) \|[^|]*\|[^|]*\| (\d+) \| \d+ \|$")]
    private static partial Regex TableRow();
}
