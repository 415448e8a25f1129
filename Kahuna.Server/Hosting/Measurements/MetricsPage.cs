using System.Text;
using Kahuna.Server.Cluster;
using OpenTelemetry.Metrics;

namespace Kahuna.Server.Hosting.Measurements;

/// <summary>
/// The page <c>/metrics</c>, in the text format of Prometheus: what OpenTelemetry's exporter writes, and the
/// histograms behind it. Nothing of OpenTelemetry is loaded before the first call. One page is made at a time; callers
/// that come meanwhile, or within 100 ms, get the same. Owned by the node; any thread.
/// </summary>
/// <param name="meter">The instruments.</param>
/// <param name="identity">The node.</param>
/// <param name="services">The services of the web server.</param>
/// <param name="time">The clock.</param>
internal sealed class MetricsPage(
    NodeMeter meter, ClusterIdentity identity, IServiceProvider services, TimeProvider time) : IDisposable
{
    /// <summary>The format that the page has.</summary>
    public const string ContentType = "text/plain; version=0.0.4; charset=utf-8";

    /// <summary>How long a page is kept: ten scrapes a second cost no more than one caller does.</summary>
    private static readonly TimeSpan s_kept = TimeSpan.FromMilliseconds(100);

    private readonly Lock _lock = new();
    private Task<byte[]>? _latest;
    private long _begun;
    private MeterProvider? _provider;
    private RequestDelegate? _exporter;
    private bool _disposed;

    /// <summary>The page as of now, or of up to 100 ms ago.</summary>
    /// <exception cref="InvalidOperationException">It could not be made; the message is one line.</exception>
    public Task<byte[]> ReadAsync()
    {
        lock (_lock)
        {
            if (_latest is { } latest && (!latest.IsCompleted || time.GetElapsedTime(_begun) < s_kept))
            {
                return latest;
            }

            _begun = time.GetTimestamp();
            _latest = Task.Run(RenderAsync);
            return _latest;
        }
    }

    /// <inheritdoc/>
    public void Dispose()
    {
        lock (_lock)
        {
            _disposed = true;
            _provider?.Dispose();
        }
    }

    private async Task<byte[]> RenderAsync()
    {
        DefaultHttpContext inner = new() { RequestServices = services };
        using MemoryStream body = new();
        inner.Request.Method = HttpMethods.Get;
        inner.Request.Headers.Accept = "text/plain; version=0.0.4";
        inner.Response.Body = body;
        await Exporter()(inner).ConfigureAwait(false);
        if (inner.Response.StatusCode != StatusCodes.Status200OK)
        {
            throw new InvalidOperationException("The metrics could not be read.");
        }

        StringBuilder text = new();
        foreach (HistogramSource histogram in meter.Histograms)
        {
            HistogramText.Append(text, histogram);
        }

        body.Write(Encoding.UTF8.GetBytes(text.ToString()));
        return body.ToArray();
    }

    /// <summary>The exporter, made at the first call.</summary>
    private RequestDelegate Exporter()
    {
        lock (_lock)
        {
            if (_disposed)
            {
                throw new InvalidOperationException("The node is stopping.");
            }

            if (_exporter is null)
            {
                _provider = MeterProviders.Begin(meter, identity)
                    .AddMeter(NodeMeter.Name)
                    .AddMeter(MeterProviders.RuntimeMeter)
                    .AddPrometheusExporter(static options =>
                    {
                        // The page is kept here instead, with the histograms.
                        options.ScrapeResponseCacheDurationMilliseconds = 0;
                        options.ScopeInfoEnabled = false;
                    })
                    .Build();
                ApplicationBuilder pipeline = new(services);
                pipeline.UseOpenTelemetryPrometheusScrapingEndpoint(_provider, static _ => true, null, null, null);
                _exporter = pipeline.Build();
            }

            return _exporter;
        }
    }
}
