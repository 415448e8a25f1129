using System.Diagnostics;
using System.Runtime.CompilerServices;
using Google.Protobuf;
using Google.Protobuf.Reflection;
using Kahuna.Client.Wire.Protos;
using Kahuna.Tests.Api.Grpc.Protos;

namespace Kahuna.Tests.Api.Grpc.Foreign;

/// <summary>Runs <c>foreign_client.py</c> against a server. Any thread.</summary>
internal static class ForeignClient
{
    private const string Python = "/usr/bin/python3";

    private static readonly TimeSpan s_patience = LastNet.Span;

    /// <summary>What the client printed, and its exit code; 0 when every check held.</summary>
    /// <param name="address">https://host:port of the server.</param>
    /// <param name="trustedPem">The authority that the client shall trust.</param>
    /// <param name="protocolOnly">The server tries the protocol, and is not the product.</param>
    public static async Task<(int ExitCode, string Output)> RunAsync(Uri address, string trustedPem, bool protocolOnly = false)
    {
        if (!File.Exists(Python))
        {
            return (127, "The Debian package python3-grpcio is missing, and with it /usr/bin/python3; apt-get install python3-grpcio brings both.");
        }

        string folder = Directory.CreateTempSubdirectory("kahuna-foreign-").FullName;
        try
        {
            string trusted = Path.Combine(folder, "ca.pem");
            string descriptors = Path.Combine(folder, "kahuna.pb");
            await File.WriteAllTextAsync(trusted, trustedPem);
            await File.WriteAllBytesAsync(descriptors, DescriptorSet().ToByteArray());
            string[] arguments = [Script(), address.Authority, trusted, descriptors];
            return await RunAsync(protocolOnly ? [.. arguments, "--protocol-only"] : arguments);
        }
        finally
        {
            Directory.Delete(folder, recursive: true);
        }
    }

    private static async Task<(int ExitCode, string Output)> RunAsync(string[] arguments)
    {
        using Process python = Process.Start(new ProcessStartInfo(Python, arguments) { RedirectStandardOutput = true, RedirectStandardError = true })!;
        try
        {
            Task<string> output = python.StandardOutput.ReadToEndAsync();
            Task<string> errors = python.StandardError.ReadToEndAsync();
            await python.WaitForExitAsync().WaitAsync(s_patience);
            return (python.ExitCode, await output + await errors);
        }
        finally
        {
            if (!python.HasExited)
            {
                python.Kill();
            }
        }
    }

    private static FileDescriptorSet DescriptorSet() => new()
    {
        File =
        {
            FileDescriptorProto.Parser.ParseFrom(KeyValuesReflection.Descriptor.SerializedData),
            FileDescriptorProto.Parser.ParseFrom(SequencesReflection.Descriptor.SerializedData),
            FileDescriptorProto.Parser.ParseFrom(LocksReflection.Descriptor.SerializedData),
            FileDescriptorProto.Parser.ParseFrom(ClusterReflection.Descriptor.SerializedData),
            FileDescriptorProto.Parser.ParseFrom(StreamsReflection.Descriptor.SerializedData),
        },
    };

    private static string Script([CallerFilePath] string here = "") => Path.Combine(Path.GetDirectoryName(here)!, "foreign_client.py");
}
