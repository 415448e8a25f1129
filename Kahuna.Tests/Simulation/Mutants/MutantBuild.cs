using System.Diagnostics;
using Kahuna.Tests.Tidy;

namespace Kahuna.Tests.Simulation.Mutants;

/// <summary>
/// Builds copies of the shipped source with a planted bug in each, one after the other, in a directory of its own.
/// Owned by the command that runs them; one thread.
/// </summary>
internal sealed class MutantBuild
{
    private static readonly string[] s_settings =
        ["Directory.Build.props", "Directory.Packages.props", "global.json", ".editorconfig", "README.md"];
    private static readonly string[] s_made = ["bin", "obj", "nupkg"];
    private static readonly string[] s_assemblies = ["kahuna-server.dll", "Kahuna.Client.dll", "Kahuna.Wire.dll"];

    private readonly MutantApplier _applier;
    private readonly string _source;
    private readonly string _bin;

    /// <summary>Copies the source and the output of the test project into an empty directory.</summary>
    public MutantBuild(string work)
    {
        _source = Path.Combine(work, "source");
        _bin = Path.Combine(work, "bin");
        foreach (string project in MutantSource.Projects)
        {
            Copy(new DirectoryInfo(Repository.FullPath(project)), Path.Combine(_source, project), s_made);
        }

        foreach (string file in s_settings)
        {
            File.Copy(Repository.FullPath(file), Path.Combine(_source, file));
        }


        // Tests beside it may have the lock of their certificates.
        Copy(new DirectoryInfo(AppContext.BaseDirectory), _bin, [TestEnvironment.CertificateFolder]);
        _applier = new MutantApplier(MutantSource.Load(_source));
    }

    /// <summary>Builds the source with this bug; <see cref="Run"/> then runs it.</summary>
    /// <returns>What went wrong; null: nothing.</returns>
    public string? Build(string name)
    {
        IReadOnlyDictionary<string, string> changed = _applier.Apply(
            MutantFolder.Read(name), out IReadOnlyList<string> errors);
        if (errors.Count > 0)
        {
            return string.Join(Environment.NewLine, errors);
        }

        Dictionary<string, string> shipped = changed.Keys.ToDictionary(
            static file => file, file => File.ReadAllText(Path.Combine(_source, file)));
        try
        {
            Write(changed);
            return Build() is { } output ? $"{name} does not build{Environment.NewLine}{output}" : null;
        }
        finally
        {
            Write(shipped);
        }
    }

    /// <summary>
    /// Runs a command of the test project with the bug that was built last, and returns its exit code.
    /// </summary>
    /// <param name="quiet">Its output is dropped.</param>
    public int Run(IEnumerable<string> arguments, bool quiet)
    {
        ProcessStartInfo start = new("dotnet", [Path.Combine(_bin, "Kahuna.Tests.dll"), .. arguments])
        {
            RedirectStandardOutput = quiet,
            RedirectStandardError = quiet,
        };
        if (quiet)
        {
            // Most of these runs are short, so code is compiled once and not by tiers.
            start.Environment["DOTNET_TieredCompilation"] = "0";
        }

        using Process process = Process.Start(start)!;
        if (quiet)
        {
            process.OutputDataReceived += static (_, _) => { };
            process.BeginOutputReadLine();
            process.StandardError.ReadToEnd();
        }

        process.WaitForExit();
        return process.ExitCode;
    }

    /// <summary>Builds the server; what the compiler says when that fails, else null.</summary>
    private string? Build()
    {
        // Analyzers and documentation take most of the time, and the bug is no matter of style.
        List<string> arguments =
        [
            .. "build -c Release --nologo -v q -p:RunAnalyzers=false -p:GenerateDocumentationFile=false".Split(' '),
            Path.Combine(_source, "Kahuna.Server"),
        ];
        if (File.Exists(Path.Combine(_source, "Kahuna.Server", "obj", "project.assets.json")))
        {
            arguments.Add("--no-restore");
        }

        ProcessStartInfo start = new("dotnet", arguments) { RedirectStandardOutput = true };
        start.Environment["MSBUILDDISABLENODEREUSE"] = "1";
        start.Environment["UseSharedCompilation"] = "false";
        using Process process = Process.Start(start)!;
        string output = process.StandardOutput.ReadToEnd();
        process.WaitForExit();
        if (process.ExitCode != 0)
        {
            return output;
        }

        foreach (string assembly in s_assemblies)
        {
            File.Copy(
                Path.Combine(_source, "Kahuna.Server", "bin", "Release", "net10.0", assembly),
                Path.Combine(_bin, assembly),
                overwrite: true);
        }

        return null;
    }

    private void Write(IReadOnlyDictionary<string, string> files)
    {
        foreach ((string file, string text) in files)
        {
            File.WriteAllText(Path.Combine(_source, file), text);
        }
    }

    private static void Copy(DirectoryInfo from, string to, string[] except)
    {
        Directory.CreateDirectory(to);
        foreach (FileInfo file in from.EnumerateFiles())
        {
            file.CopyTo(Path.Combine(to, file.Name));
        }

        foreach (DirectoryInfo child in from.EnumerateDirectories().Where(child => !except.Contains(child.Name)))
        {
            Copy(child, Path.Combine(to, child.Name), except);
        }
    }
}
