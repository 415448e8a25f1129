using System.Diagnostics.Metrics;
using Kahuna.Client;
using Kahuna.Server.Hosting;
using Kahuna.Server.Hosting.Measurements;
using Kahuna.Tests.Client;

namespace Kahuna.Tests.Hosting.Measurements;

/// <summary>Listeners of the application that throw do not reach the node that they listen to.</summary>
public sealed class NodeMeterTests
{
    [Fact]
    public void A_listener_that_throws_when_it_is_told_of_an_instrument_leaves_the_others()
    {
        using MeterListener listener = new();
        listener.InstrumentPublished = static (instrument, _) =>
        {
            if (instrument.Name == "kahuna.test.thrown")
            {
                throw new InvalidOperationException("no");
            }
        };
        listener.Start();
        using NodeMeter meter = new();
        meter.Gauge(new MetricName("kahuna.test.thrown", "A number."), static () => 1L);
        List<Instrument> heard = [];
        listener.InstrumentPublished = (instrument, _) =>
        {
            if (instrument.Name == "kahuna.test.other")
            {
                heard.Add(instrument);
            }
        };
        meter.Gauge(new MetricName("kahuna.test.other", "A number."), static () => 1L);

        Assert.Equal(1, meter.SeriesOf(Assert.Single(heard)));
    }

    [Fact]
    public async Task A_listener_that_throws_on_each_value_harms_neither_operations_nor_the_page()
    {
        using MeterListener listener = new();
        listener.InstrumentPublished = static (instrument, listener) =>
        {
            if (instrument.Meter.Name == NodeMeter.Name)
            {
                listener.EnableMeasurementEvents(instrument);
            }
        };
        listener.SetMeasurementEventCallback<long>(static (_, _, _, _) => throw new InvalidOperationException("no"));
        listener.SetMeasurementEventCallback<double>(static (_, _, _, _) => throw new InvalidOperationException("no"));
        listener.Start();
        await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(1).WaitAsync(Wait.Longest);
        await using KahunaClient client = PatientClient.Connect(cluster.Endpoints);
        await client.KeyValues.SetAsync("a/b", "1");

        // What the listener throws comes out where it asks.
        Assert.Throws<AggregateException>(listener.RecordObservableInstruments);
        await client.KeyValues.SetAsync("a/b", "2");
        MetricsText page = await MetricsPageTests.ReadAsync(cluster.Nodes[0]);
        Assert.Equal(2, page.Sum("kahuna_operations_total", ("kahuna_operation", "set")));
        Assert.Equal(1, page.Sum("kahuna_node_ready"));
    }
}
