using Kahuna.Tests.Tidy;

namespace Kahuna.Tests.Simulation.Mutants;

/// <summary>
/// <c>mutate</c>: lists planted bugs, checks that they apply, or applies one to a copy of the source. Stateless.
/// </summary>
internal static class MutateCommand
{
    private const string Usage = "Usage: mutate --list | mutate --check [--source DIR] | mutate NAME --source DIR";

    public static int Run(string[] args, TextWriter output, TextWriter errors)
    {
        string source = args is [_, "--source", _] ? args[2] : Repository.Root;
        switch (args)
        {
            case ["--list"]:
                output.WriteLine(string.Join(Environment.NewLine, MutantFolder.Names));
                return 0;
            case ["--check"] or ["--check", "--source", _]:
                List<string> findings = Check(source, MutantFolder.Names);
                findings.ForEach(errors.WriteLine);
                output.WriteLine($"{MutantFolder.Names.Count} planted bugs, {findings.Count} findings");
                return findings.Count == 0 ? 0 : 1;
            case [string name, "--source", _] when MutantFolder.Names.Contains(name):
                return Apply(name, source, errors);
            default:
                errors.WriteLine(Usage);
                return 2;
        }
    }

    /// <summary>Why planted bugs do not apply to a source; empty when all do.</summary>
    public static List<string> Check(string root, IEnumerable<string> names)
    {
        MutantApplier applier = new(MutantSource.Load(root));
        List<string> findings = [];
        foreach (string name in names)
        {
            try
            {
                applier.Apply(MutantFolder.Read(name), out IReadOnlyList<string> errors);
                findings.AddRange(errors);
            }
            catch (FormatException malformed)
            {
                findings.Add(malformed.Message);
            }
        }

        return findings;
    }

    private static int Apply(string name, string root, TextWriter errors)
    {
        IReadOnlyDictionary<string, string> changed = new MutantApplier(MutantSource.Load(root)).Apply(
            MutantFolder.Read(name), out IReadOnlyList<string> wrong);
        foreach (string error in wrong)
        {
            errors.WriteLine(error);
        }

        if (wrong.Count > 0)
        {
            return 1;
        }

        foreach ((string path, string text) in changed)
        {
            File.WriteAllText(Path.Combine(root, path), text);
        }

        return 0;
    }
}
