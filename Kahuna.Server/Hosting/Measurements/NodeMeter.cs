using System.Diagnostics.Metrics;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Hosting.Measurements;

/// <summary>
/// The instruments of one node. Each reads its figures when somebody looks, so that a node that nobody looks at does
/// nothing for them. Built by the node, which disposes it; any thread.
/// </summary>
internal sealed class NodeMeter : IDisposable
{
    /// <summary>The name of the meter.</summary>
    public const string Name = "Kahuna.Server";

    /// <summary>
    /// The name of the meter with the histograms as counters. The page has them as histograms instead
    /// (docs/adr/0049-metrics.md).
    /// </summary>
    public const string HistogramsName = "Kahuna.Server.Histograms";

    private readonly Meter _meter = new(Name, ProductVersion.Text);
    private readonly Meter _histogramMeter = new(HistogramsName, ProductVersion.Text);
    private readonly Dictionary<Instrument, int> _series = [];
    private readonly List<HistogramSource> _histograms = [];

    /// <summary>The histograms, in the order in which they were added.</summary>
    public IReadOnlyList<HistogramSource> Histograms => _histograms;

    /// <summary>
    /// The most series that an instrument can have; null: it is not one of this node.
    /// </summary>
    public int? SeriesOf(Instrument instrument) => _series.TryGetValue(instrument, out int series) ? series : null;

    /// <summary>Adds a number that only grows.</summary>
    public void Counter(MetricName name, Func<long> read) =>
        Add(1, () => _meter.CreateObservableCounter(name.Name, read, name.Unit, name.Text));

    /// <summary>Adds numbers that only grow.</summary>
    /// <param name="name">What they are.</param>
    /// <param name="series">The most of them.</param>
    /// <param name="read">Reads them.</param>
    public void Counter(MetricName name, int series, Func<IEnumerable<Measurement<long>>> read) =>
        Add(series, () => _meter.CreateObservableCounter(name.Name, read, name.Unit, name.Text));

    /// <summary>Adds a number that grows and falls.</summary>
    public void Gauge(MetricName name, Func<long> read) =>
        Add(1, () => _meter.CreateObservableGauge(name.Name, read, name.Unit, name.Text));

    /// <summary>Adds a time in seconds.</summary>
    public void Gauge(MetricName name, Func<double> read) =>
        Add(1, () => _meter.CreateObservableGauge(name.Name, read, name.Unit, name.Text));

    /// <inheritdoc cref="Counter(MetricName, int, Func{IEnumerable{Measurement{long}}})"/>
    public void Gauge(MetricName name, int series, Func<IEnumerable<Measurement<long>>> read) =>
        Add(series, () => _meter.CreateObservableGauge(name.Name, read, name.Unit, name.Text));

    /// <summary>Adds durations.</summary>
    /// <param name="name">What they are; without a unit, which is the second.</param>
    /// <param name="series">The most combinations of labels.</param>
    /// <param name="read">Reads them.</param>
    public void Histogram(MetricName name, int series, Func<IEnumerable<HistogramSeries>> read)
    {
        HistogramSource source = new(name.Name, name.Text, read);
        _histograms.Add(source);
        Add(series * (DurationHistogram.Bounds + 1), () => _histogramMeter.CreateObservableCounter(
            name.Name + ".bucket", source.Buckets, null, name.Text + " Of at most 'le' seconds."));
        Add(series, () => _histogramMeter.CreateObservableCounter(
            name.Name + ".sum", source.Sums, "s", name.Text + " Their sum."));
    }

    /// <inheritdoc/>
    public void Dispose()
    {
        _meter.Dispose();
        _histogramMeter.Dispose();
    }

    /// <summary>
    /// Adds an instrument. If a listener of the process fails when it is told of it, the instrument is missing, but
    /// the node starts.
    /// </summary>
    private void Add(int series, Func<Instrument> make)
    {
        try
        {
            _series.Add(make(), series);
        }
        catch (Exception error) when (error is not OutOfMemoryException)
        {
            // The others are told of.
        }
    }
}

/// <summary>The name of a metric. A value.</summary>
/// <param name="Name">The name, with dots, as OpenTelemetry's conventions have it.</param>
/// <param name="Text">What it is, in a sentence.</param>
/// <param name="Unit">The unit; null: a plain number.</param>
internal readonly record struct MetricName(string Name, string Text, string? Unit = null);
