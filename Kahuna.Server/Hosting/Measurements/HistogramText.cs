using System.Globalization;
using System.Text;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Hosting.Measurements;

/// <summary>Writes histograms as the text format of Prometheus has them. Stateless.</summary>
internal static class HistogramText
{
    /// <summary>Appends a histogram; nothing while it has no series.</summary>
    public static void Append(StringBuilder text, HistogramSource source)
    {
        string name = source.Name.Replace('.', '_') + "_seconds";
        bool hasBegun = false;
        foreach (HistogramSeries series in source.Read())
        {
            if (!hasBegun)
            {
                text.Append(CultureInfo.InvariantCulture, $"# TYPE {name} histogram\n# HELP {name} {source.Text}\n");
                hasBegun = true;
            }

            string labels = LabelsOf(series);
            long total = 0;
            for (int i = 0; i <= DurationHistogram.Bounds; i++)
            {
                total += series.Counts[i];
                string comma = labels.Length > 0 ? "," : "";
                text.Append(
                    CultureInfo.InvariantCulture,
                    $"{name}_bucket{{{labels}{comma}le=\"{HistogramSource.Bounds[i]}\"}} {total}\n");
            }

            string braces = labels.Length > 0 ? $"{{{labels}}}" : "";
            text.Append(CultureInfo.InvariantCulture, $"{name}_sum{braces} {series.Seconds}\n");
            text.Append(CultureInfo.InvariantCulture, $"{name}_count{braces} {total}\n");
        }
    }

    /// <summary>No value of a label here needs an escape: all are names and numbers of this program.</summary>
    private static string LabelsOf(HistogramSeries series) => string.Join(',', series.Labels.Select(
        static label => $"{label.Key.Replace('.', '_')}=\"{label.Value}\""));
}
