using System.Text.Json;
using System.Text.Json.Serialization;

namespace Kahuna.Cli.Connecting;

/// <summary>
/// The form of the file of contexts. The compiler generates it: reflection would take a tenth of a completion.
/// </summary>
[JsonSourceGenerationOptions(
    JsonSerializerDefaults.Web,
    WriteIndented = true,
    DefaultIgnoreCondition = JsonIgnoreCondition.WhenWritingNull,
    UnmappedMemberHandling = JsonUnmappedMemberHandling.Disallow)]
[JsonSerializable(typeof(ContextBook))]
internal sealed partial class ContextJson : JsonSerializerContext;
