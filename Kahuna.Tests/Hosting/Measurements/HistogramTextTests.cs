using System.Text;
using Kahuna.Server.Hosting.Measurements;
using Kahuna.Server.Primitives;

namespace Kahuna.Tests.Hosting.Measurements;

/// <summary>A histogram as a page has it.</summary>
public sealed class HistogramTextTests
{
    [Fact]
    public void Buckets_are_cumulative_and_the_last_one_has_all()
    {
        DurationHistogram histogram = new();
        foreach (long us in (long[])[10, 100, 100, 1_000, 50_000_000])
        {
            histogram.Add(us);
        }

        StringBuilder text = new();
        HistogramText.Append(text, new HistogramSource(
            "kahuna.test", "Some.", () => [HistogramSeries.Of([new("kahuna.kind", "a")], [histogram])]));
        MetricsText page = MetricsText.Parse(text.ToString());

        Assert.Equal(
            [1, 3, 3, 3, 4],
            page.Families["kahuna_test_seconds"].Samples.Take(5).Select(static bucket => (int)bucket.Value));
        Assert.Equal(4, page.Sum("kahuna_test_seconds_bucket", ("le", "33.554432"), ("kahuna_kind", "a")));
        Assert.Equal(5, page.Sum("kahuna_test_seconds_bucket", ("le", "+Inf")));
        Assert.Equal(5, page.Sum("kahuna_test_seconds_count", ("kahuna_kind", "a")));
        Assert.Equal(50.00121, page.Sum("kahuna_test_seconds_sum"), 5);
    }

    [Fact]
    public void A_histogram_without_series_is_not_on_the_page()
    {
        StringBuilder text = new();
        HistogramText.Append(text, new HistogramSource("kahuna.test", "Some.", static () => []));
        Assert.Equal("", text.ToString());
    }
}
