using System.Text.Encodings.Web;
using System.Text.Json;

namespace Kahuna.Tests.Tools.Reporting;

/// <summary>A report as JSON. Stateless.</summary>
internal static class ReportFile
{
    private static readonly JsonSerializerOptions s_options =
        new(JsonSerializerDefaults.Web) { WriteIndented = true, Encoder = JavaScriptEncoder.UnsafeRelaxedJsonEscaping };

    /// <summary>Writes a report; nothing when the name is empty.</summary>
    public static void Write<T>(string file, T report)
    {
        if (file.Length > 0)
        {
            File.WriteAllText(file, Text(report) + "\n");
        }
    }

    public static string Text<T>(T report) => JsonSerializer.Serialize(report, s_options);
}
