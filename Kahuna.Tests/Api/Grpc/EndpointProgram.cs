using System.Diagnostics;

namespace Kahuna.Tests.Api.Grpc;

/// <summary>
/// The test assembly as a program: an endpoint in a process of its own, for tests that limit the process. It prints its
/// address and ends when its input does. Run by <see cref="FloodTests"/>.
/// </summary>
internal static class EndpointProgram
{
    /// <summary>Starts the program with a limit of file descriptors.</summary>
    public static Process Start(int descriptors)
    {
        string assembly = typeof(EndpointProgram).Assembly.Location;
        return Process.Start(new ProcessStartInfo("/bin/sh", ["-c", $"ulimit -n {descriptors}; exec \"$0\" exec \"$1\"", Environment.ProcessPath!, assembly])
        {
            RedirectStandardInput = true,
            RedirectStandardOutput = true,
            Environment = { ["DOTNET_gcServer"] = "0" },
        })!;
    }

    private static async Task<int> Main()
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync();
        Console.WriteLine(host.Address);
        while (await Console.In.ReadLineAsync() is not null)
        {
        }

        return 0;
    }
}
