using System.Globalization;
using System.Text.RegularExpressions;

namespace Kahuna.Tests.Hosting.Measurements;

/// <summary>A parsed page of metrics in the text format of Prometheus. Immutable.</summary>
internal sealed partial class MetricsText
{
    private readonly Dictionary<string, Family> _families = new(StringComparer.Ordinal);

    private MetricsText()
    {
    }

    /// <summary>The families, by name.</summary>
    public IReadOnlyDictionary<string, Family> Families => _families;

    /// <summary>
    /// Parses a page. Every line must be one of the format, no series may occur twice, and the buckets of a histogram
    /// must be those of one: each has all that is in those below, and the last has as many as were counted.
    /// </summary>
    public static MetricsText Parse(string text)
    {
        MetricsText page = new();
        HashSet<string> seen = [];
        Family? family = null;
        foreach (string line in text.Split('\n', StringSplitOptions.RemoveEmptyEntries))
        {
            if (Type().Match(line) is { Success: true } type)
            {
                family = new Family(type.Groups[2].Value);
                page._families.Add(type.Groups[1].Value, family);
            }
            else if (!line.StartsWith('#'))
            {
                Match sample = Sample().Match(line);
                Assert.True(sample.Success && family is not null, line);
                Assert.True(seen.Add(line[..line.LastIndexOf(' ')]), $"twice: {line}");
                family.Samples.Add(new Sampled(
                    sample.Groups[1].Value,
                    Label().Matches(sample.Groups[2].Value).ToDictionary(
                        static label => label.Groups[1].Value, static label => label.Groups[2].Value),
                    double.Parse(sample.Groups[3].Value, CultureInfo.InvariantCulture)));
            }
        }

        foreach ((string name, Family histogram) in page._families.Where(static one => one.Value.Type == "histogram"))
        {
            Check(name, histogram);
        }

        return page;
    }

    /// <summary>The sum of the samples of a name that have these labels.</summary>
    public double Sum(string name, params (string Label, string Value)[] labels) =>
        _families.Values.SelectMany(static family => family.Samples)
            .Where(sample => sample.Name == name
                && labels.All(label => sample.Labels.GetValueOrDefault(label.Label) == label.Value))
            .Sum(static sample => sample.Value);

    private static void Check(string name, Family histogram)
    {
        foreach (IGrouping<string, Sampled> series in histogram.Samples.GroupBy(static sample => string.Join(
            ',', sample.Labels.Where(static label => label.Key != "le").OrderBy(static label => label.Key))))
        {
            Sampled[] buckets = [.. series.Where(sample => sample.Name == name + "_bucket")];
            Assert.Equal(buckets.OrderBy(static bucket => Bound(bucket)), buckets);
            Assert.Equal(
                buckets.Select(static bucket => bucket.Value).Order(), buckets.Select(static bucket => bucket.Value));
            Assert.Equal(double.PositiveInfinity, Bound(buckets[^1]));
            Assert.Equal(series.Single(sample => sample.Name == name + "_count").Value, buckets[^1].Value);
        }
    }

    private static double Bound(Sampled bucket) => bucket.Labels["le"] == "+Inf"
        ? double.PositiveInfinity
        : double.Parse(bucket.Labels["le"], CultureInfo.InvariantCulture);

    [GeneratedRegex(@"^# TYPE (\S+) (\S+)$")]
    private static partial Regex Type();

    [GeneratedRegex(@"^(\w+)(\{.*\})? (\S+)$")]
    private static partial Regex Sample();

    [GeneratedRegex("(\\w+)=\"((?:[^\"\\\\]|\\\\.)*)\"")]
    private static partial Regex Label();

    /// <summary>A metric with its samples.</summary>
    internal sealed record Family(string Type)
    {
        public List<Sampled> Samples { get; } = [];

        /// <summary>The labels that any of them has, but for the bounds of buckets.</summary>
        public IEnumerable<string> Labels =>
            Samples.SelectMany(static sample => sample.Labels.Keys).Where(static label => label != "le").Distinct();
    }

    /// <summary>A line of the page.</summary>
    internal sealed record Sampled(string Name, IReadOnlyDictionary<string, string> Labels, double Value);
}
