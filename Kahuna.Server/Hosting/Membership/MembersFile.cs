using System.Globalization;
using System.Text;
using System.Text.Json;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Hosting.Membership;

/// <summary>
/// The content of <c>members.json</c>: the data directories of the other nodes that this one has met. Immutable.
/// </summary>
/// <param name="FromTheBeginning">Whether the record covers the time since this node's first start. If so, a node that
/// is missing in it was never met.</param>
/// <param name="Members">The nodes that were met.</param>
internal sealed record MembersFile(bool FromTheBeginning, IReadOnlyList<MemberRecord> Members)
{
    public const string FileName = "members.json";

    /// <summary>Version of the file's layout.</summary>
    public const int Format = 1;

    /// <summary>Reads the file of a data directory; null if there is none.</summary>
    /// <exception cref="DataDirectoryException">It is damaged or cannot be read; the message is one line.</exception>
    public static MembersFile? TryRead(string directory)
    {
        string path = Path.Combine(directory, FileName);
        try
        {
            return File.Exists(path) ? Parse(path, File.ReadAllBytes(path)) : null;
        }
        catch (Exception error) when (error is IOException or UnauthorizedAccessException)
        {
            throw DataDirectoryIdentity.Unusable(directory, error);
        }
    }

    /// <summary>Replaces the file durably and atomically.</summary>
    public void Write(string directory)
    {
        StringBuilder text = new();
        text.Append(
            CultureInfo.InvariantCulture,
            $"{{\n  \"format\": {Format},\n  \"fromTheBeginning\": "
                + $"{(FromTheBeginning ? "true" : "false")},\n  \"members\": [");
        string separator = "\n";
        foreach (MemberRecord member in Members)
        {
            string former = string.Join(", ", member.Former.Select(id => $"\"{id:x16}\""));
            text.Append(
                CultureInfo.InvariantCulture,
                $"{separator}    {{ \"nodeId\": {member.Id}, \"directoryId\": "
                    + $"\"{member.DirectoryId:x16}\", \"former\": [{former}] }}");
            separator = ",\n";
        }

        text.Append(Members.Count > 0 ? "\n  ]\n}\n" : "]\n}\n");
        StableFile.Write(Path.Combine(directory, FileName), Encoding.UTF8.GetBytes(text.ToString()));
    }

    public MemberRecord? Find(NodeId id) => Members.FirstOrDefault(member => member.Id == id);

    /// <summary>Replaces the record of the same node.</summary>
    public MembersFile With(MemberRecord member) =>
        this with
        {
            Members = [.. Members.Where(other => other.Id != member.Id).Append(member).OrderBy(other => other.Id)],
        };

    private static MembersFile Parse(string path, byte[] content)
    {
        try
        {
            using JsonDocument document = JsonDocument.Parse(content);
            JsonElement root = document.RootElement;
            int format = JsonFields.Need(root, "format", static field => field.GetInt32());
            if (format != Format)
            {
                throw new DataDirectoryException(
                    $"{path} has format {format}; this version understands format {Format} only.");
            }

            MembersFile file = new(
                JsonFields.Need(root, "fromTheBeginning", static field => field.GetBoolean()),
                JsonFields.Need<MemberRecord[]>(root, "members", static field =>
                    [.. field.EnumerateArray().Select(ReadMember).OrderBy(member => member.Id)]));
            return file.Members.DistinctBy(member => member.Id).Count() == file.Members.Count
                ? file
                : throw new JsonException("A node is named twice.");
        }
        catch (JsonException error)
        {
            throw new DataDirectoryException(
                $"{path} is damaged: {OneLine.Of(error.Message)} It records the known data directories of the other "
                    + $"nodes; without it, this node cannot tell a wiped node from a new one. "
                + "If the majority of the other nodes is intact, start this node with --rebuild.",
                error);
        }
    }

    private static MemberRecord ReadMember(JsonElement element) => new(
        new NodeId(JsonFields.Need(element, "nodeId", static field => field.GetUInt16())),
        JsonFields.Need(element, "directoryId", JsonFields.Id),
        JsonFields.Need<ulong[]>(element, "former", static field => [.. field.EnumerateArray().Select(JsonFields.Id)]));
}
