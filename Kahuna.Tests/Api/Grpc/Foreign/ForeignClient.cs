using System.ComponentModel;
using System.Diagnostics;
using System.Runtime.CompilerServices;
using Google.Protobuf;
using Google.Protobuf.Reflection;
using Grpc.Health.V1;
using Grpc.Reflection.V1;
using Kahuna.Server.Api.Protos;
using Kahuna.Tests.Api.Grpc.Protos;

namespace Kahuna.Tests.Api.Grpc.Foreign;

/// <summary>Runs <c>foreign_client.py</c> or <c>node/foreign_client.mjs</c> against a server. Any thread.</summary>
internal static class ForeignClient
{
    private const string Python = "/usr/bin/python3";
    private const string Node = "node";
    private const int Missing = 127;

    private static readonly TimeSpan s_patience = LastNet.Span;

    /// <summary>What the client in Python printed, and its exit code; 0 when every check held.</summary>
    /// <param name="address">https://host:port of the server.</param>
    /// <param name="trustedPem">The authority that the client shall trust.</param>
    /// <param name="protocolOnly">The server tries the protocol, and is not the product.</param>
    public static Task<(int ExitCode, string Output)> RunPythonAsync(
        Uri address, string trustedPem, bool protocolOnly = false) =>
        RunAsync(
            Python,
            Here("foreign_client.py"),
            address,
            trustedPem,
            "The Debian package python3-grpcio is missing, and with it /usr/bin/python3; apt-get install "
                + "python3-grpcio brings both.",
            protocolOnly ? ["--protocol-only"] : []);

    /// <summary>As <see cref="RunPythonAsync"/>, the client for Node.</summary>
    public static async Task<(int ExitCode, string Output)> RunNodeAsync(Uri address, string trustedPem)
    {
        string folder = Here("node");
        return Directory.Exists(Path.Combine(folder, "node_modules"))
            ? await RunAsync(
                Node,
                Path.Combine(folder, "foreign_client.mjs"),
                address,
                trustedPem,
                "Node is missing; apt-get install nodejs npm brings it.",
                [])
            : (
                Missing,
                $"The packages of the client for Node are missing; npm ci --ignore-scripts in {folder} brings them, "
                    + $"and apt-get install nodejs npm brings npm. scripts/test.sh does both.");
    }

    private static async Task<(int ExitCode, string Output)> RunAsync(
        string program, string script, Uri address, string trustedPem, string whenMissing, string[] options)
    {
        string folder = Directory.CreateTempSubdirectory("kahuna-foreign-").FullName;
        try
        {
            string trusted = Path.Combine(folder, "ca.pem");
            string descriptors = Path.Combine(folder, "kahuna.pb");
            await File.WriteAllTextAsync(trusted, trustedPem);
            await File.WriteAllBytesAsync(descriptors, DescriptorSet().ToByteArray());
            return await RunAsync(program, [script, address.Authority, trusted, descriptors, .. options]);
        }
        catch (Win32Exception)
        {
            // There is no such program.
            return (Missing, whenMissing);
        }
        finally
        {
            Directory.Delete(folder, recursive: true);
        }
    }

    private static async Task<(int ExitCode, string Output)> RunAsync(string program, string[] arguments)
    {
        using Process client = Process.Start(
            new ProcessStartInfo(program, arguments) { RedirectStandardOutput = true, RedirectStandardError = true })!;
        try
        {
            Task<string> output = client.StandardOutput.ReadToEndAsync();
            Task<string> errors = client.StandardError.ReadToEndAsync();
            await client.WaitForExitAsync().WaitAsync(s_patience);
            return (client.ExitCode, await output + await errors);
        }
        finally
        {
            if (!client.HasExited)
            {
                client.Kill();
            }
        }
    }

    /// <summary>The files of the services, each after what it imports.</summary>
    private static FileDescriptorSet DescriptorSet()
    {
        Dictionary<string, ByteString> files = [];
        FileDescriptor[] roots =
        [
            KeyValuesReflection.Descriptor,
            TransactionsReflection.Descriptor,
            ScriptsReflection.Descriptor,
            SequencesReflection.Descriptor,
            LocksReflection.Descriptor,
            ClusterReflection.Descriptor,
            StreamsReflection.Descriptor, HealthReflection.Descriptor, ReflectionReflection.Descriptor,
        ];
        foreach (FileDescriptor file in roots)
        {
            Collect(file, files);
        }

        return new FileDescriptorSet { File = { files.Values.Select(FileDescriptorProto.Parser.ParseFrom) } };
    }

    private static void Collect(FileDescriptor file, Dictionary<string, ByteString> files)
    {
        foreach (FileDescriptor import in file.Dependencies)
        {
            Collect(import, files);
        }

        files.TryAdd(file.Name, file.SerializedData);
    }

    private static string Here(string name, [CallerFilePath] string here = "") =>
        Path.Combine(Path.GetDirectoryName(here)!, name);
}
