using System.Diagnostics;

namespace Kahuna.Tests.Tools.Paths;

/// <summary>
/// <c>path</c>: counts the files, types and methods that one operation passes from the call to the answer, followers
/// included. <c>--files</c> lists them. Stateless.
/// </summary>
internal static class PathCommand
{
    private const int Repetitions = 150;

    /// <returns>0: printed; 1: the run failed; 2: bad usage.</returns>
    public static int Run(string[] args, TextWriter output, TextWriter errors)
    {
        switch (args)
        {
            case [] or ["--files"]:
                return RunCopy(args, output, errors);
            case ["--here"] or ["--here", "--files"]:
                Print(args.Length > 1, output).GetAwaiter().GetResult();
                return 0;
            default:
                errors.WriteLine("path: usage: path [--files]");
                return 2;
        }
    }

    private static int RunCopy(string[] args, TextWriter output, TextWriter errors)
    {
        string folder = Directory.CreateTempSubdirectory("kahuna-path-").FullName;
        try
        {
            PathWeaver.Weave(folder);
            string program = Path.Combine(folder, "Kahuna.Tests.dll");
            using Process run = Process.Start(
                new ProcessStartInfo("dotnet", [program, "path", "--here", .. args])
                {
                    RedirectStandardOutput = true,
                })!;
            string lines = run.StandardOutput.ReadToEnd();
            run.WaitForExit();
            output.Write(lines);
            if (run.ExitCode != 0)
            {
                errors.WriteLine($"path: the woven copy ended with exit code {run.ExitCode}");
            }

            return run.ExitCode == 0 ? 0 : 1;
        }
        finally
        {
            Directory.Delete(folder, recursive: true);
        }
    }

    private static async Task Print(bool listsFiles, TextWriter output)
    {
        string list = Path.Combine(AppContext.BaseDirectory, PathWeaver.ListName);
        List<WovenMethod> methods = [.. File.ReadLines(list).Select(WovenMethod.Parse)];
        output.WriteLine($"{"operation",-14} {"files",6} {"types",6} {"methods",8}");
        foreach (OperationPath path in await new PathRun(methods, Repetitions).RunAsync())
        {
            output.WriteLine(
                $"{path.Operation,-14} {path.Files.Count,6} {path.Types.Count,6} {path.Stations.Count,8}");
            foreach (string file in listsFiles ? path.Files : [])
            {
                IEnumerable<string> stations = path.Stations
                    .Where(station => station.File == file)
                    .Select(station => $"{station.Type[(station.Type.LastIndexOf('.') + 1)..]}.{station.Name}")
                    .Distinct();
                output.WriteLine($"  {file}: {string.Join(", ", stations)}");
            }
        }
    }
}
