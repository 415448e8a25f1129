using System.Text.Json;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Hosting.Options;

/// <summary>
/// What a data directory is and stays: <c>node.json</c> with format version, cluster id, node id and number of partitions, written
/// once at the first start. Immutable.
/// </summary>
internal sealed record DataDirectoryIdentity(string ClusterId, NodeId NodeId, int Partitions)
{
    public const string FileName = "node.json";

    /// <summary>Version of the directory's layout.</summary>
    public const int Format = 1;

    /// <summary>
    /// Reads the directory's identity, or gives it one when it is new, and checks the options against it.
    /// </summary>
    /// <exception cref="DataDirectoryException">The directory belongs to something else, or cannot be read or written; the message is one line.</exception>
    public static DataDirectoryIdentity Open(NodeOptions options)
    {
        string path = Path.Combine(options.DataDirectory, FileName);
        try
        {
            Directory.CreateDirectory(options.DataDirectory);
            if (!File.Exists(path))
            {
                TryCreate(path, new DataDirectoryIdentity(options.ClusterId, options.NodeId, options.Partitions));
            }

            DataDirectoryIdentity identity = Parse(path, File.ReadAllBytes(path));
            identity.Check(options);
            return identity;
        }
        catch (Exception error) when (error is IOException or UnauthorizedAccessException)
        {
            throw new DataDirectoryException($"Cannot use the data directory {options.DataDirectory}: {OneLine.Of(error.Message)}", error);
        }
    }

    private static void TryCreate(string path, DataDirectoryIdentity identity)
    {
        string text = $$"""
            {
              "format": {{Format}},
              "clusterId": {{JsonSerializer.Serialize(identity.ClusterId)}},
              "nodeId": {{identity.NodeId}},
              "partitions": {{identity.Partitions}}
            }

            """;
        try
        {
            StableFile.Write(path, System.Text.Encoding.UTF8.GetBytes(text), replace: false);
        }
        catch (IOException) when (File.Exists(path))
        {
            // Another process was faster; what it wrote is read and checked like any other identity.
        }
    }

    private static DataDirectoryIdentity Parse(string path, byte[] content)
    {
        try
        {
            using JsonDocument document = JsonDocument.Parse(content);
            JsonElement root = document.RootElement;
            int format = root.GetProperty("format").GetInt32();
            if (format != Format)
            {
                throw new DataDirectoryException($"{path} has format {format}; this version understands format {Format} only.");
            }

            return new DataDirectoryIdentity(
                root.GetProperty("clusterId").GetString()!,
                new NodeId(root.GetProperty("nodeId").GetUInt16()),
                root.GetProperty("partitions").GetInt32());
        }
        catch (Exception error) when (error is JsonException or KeyNotFoundException or InvalidOperationException or FormatException)
        {
            throw new DataDirectoryException($"{path} is damaged: {OneLine.Of(error.Message)}", error);
        }
    }

    private void Check(NodeOptions options)
    {
        if (ClusterId != options.ClusterId)
        {
            throw Mismatch(options, $"cluster '{ClusterId}'", $"cluster '{options.ClusterId}'");
        }

        if (NodeId != options.NodeId)
        {
            throw Mismatch(options, $"node {NodeId}", $"node {options.NodeId}");
        }

        if (options.PartitionsGiven && Partitions != options.Partitions)
        {
            throw Mismatch(options, $"{Partitions} partitions", $"{options.Partitions} partitions");
        }
    }

    private static DataDirectoryException Mismatch(NodeOptions options, string recorded, string asked) =>
        new($"The data directory {options.DataDirectory} was created for {recorded}, but this node is started with {asked}; correct the option or use another directory.");
}
