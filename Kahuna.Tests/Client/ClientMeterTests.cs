using System.Diagnostics.Metrics;
using Kahuna.Client;
using Kahuna.Client.Connection;
using Kahuna.Client.Outcomes;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Client;

/// <summary>
/// What the meter of the client says while somebody listens. Other tests of the process count as well.
/// </summary>
public sealed class ClientMeterTests
{
    [Fact]
    public async Task Operations_are_timed_by_kind_durability_and_outcome()
    {
        using Recorder recorder = new();
        ManualTime time = new();
        FakeCluster cluster = new();
        await using KahunaClient client = await cluster.ConnectedAsync(time, TimeSpan.FromMinutes(5));
        Task<IncrementResult> increment = Wait.ForAsync(client.KeyValues.IncrementAsync("n"));
        FakeRequest request = cluster[1].Next();
        time.Advance(TimeSpan.FromMilliseconds(1_500));
        request.Connection.Reply(request, new FakeReply(OutcomeStatus.MemoryFull));
        await Assert.ThrowsAsync<KahunaException>(() => increment);

        Assert.Contains((1.5, "increment", "persistent", "memory_full"), recorder.Durations);
    }

    [Fact]
    public async Task Retries_and_moves_are_counted()
    {
        using Recorder recorder = new();
        FakeCluster cluster = new(nodes: 2);
        await using KahunaClient client = await cluster.ConnectedAsync();
        Task<IncrementResult> increment = Wait.ForAsync(client.KeyValues.IncrementAsync("n"));
        FakeRequest request = cluster[1].Next();
        cluster[2].Answer = static _ => new FakeReply(OutcomeStatus.Applied, 3, 7);
        request.Connection.Reply(request, FakeReply.NotLeader(2));
        Assert.Equal(7, (await increment).Value);

        Assert.Contains(("kahuna.client.operation.retries", "increment"), recorder.Counted);
        Assert.Contains(("kahuna.client.operation.moves", "increment"), recorder.Counted);
    }

    [Fact]
    public async Task Streams_and_pending_operations_are_observed()
    {
        FakeCluster cluster = new();
        await using KahunaClient client = await cluster.ConnectedAsync();
        Task<SetResult> set = Wait.ForAsync(client.KeyValues.SetAsync("k", "v"));
        FakeRequest request = cluster[1].Next();
        using (Recorder recorder = new())
        {
            recorder.Observe();
            Assert.True(recorder.Observed("kahuna.client.streams") >= 1);
            Assert.True(recorder.Observed("kahuna.client.operations.pending") >= 1);
        }

        request.Connection.Reply(request, FakeReply.Applied());
        await set;
    }

    [Fact]
    public async Task A_listener_that_throws_does_not_harm_operations()
    {
        using MeterListener listener = new();
        listener.InstrumentPublished = static (instrument, listener) =>
        {
            if (instrument.Meter.Name == ClientMeter.Name)
            {
                listener.EnableMeasurementEvents(instrument);
            }
        };
        listener.SetMeasurementEventCallback<double>(static (_, _, _, _) => throw new InvalidOperationException("no"));
        listener.SetMeasurementEventCallback<long>(static (_, _, _, _) => throw new InvalidOperationException("no"));
        listener.Start();
        FakeCluster cluster = new();
        await using KahunaClient client = await cluster.ConnectedAsync();
        cluster[1].Answer = static _ => FakeReply.Applied();
        await client.KeyValues.SetAsync("k", "v").AsTask().WaitAsync(LastNet.Minute);
        await client.KeyValues.SetAsync("k", "v").AsTask().WaitAsync(LastNet.Minute);
    }

    [Fact]
    public void A_listener_that_throws_when_it_is_told_of_an_instrument_leaves_the_others()
    {
        using Meter meter = new("Kahuna.Client.Test");
        using MeterListener listener = new();
        listener.InstrumentPublished = static (instrument, _) =>
        {
            if (instrument is { Meter.Name: "Kahuna.Client.Test", Name: "thrown" })
            {
                throw new InvalidOperationException("no");
            }
        };
        listener.Start();

        Assert.Null(ClientMeter.TryMake(() => meter.CreateCounter<long>("thrown")));
        Assert.NotNull(ClientMeter.TryMake(() => meter.CreateCounter<long>("other")));
    }

    private sealed class Recorder : IDisposable
    {
        private readonly MeterListener _listener = new();
        private readonly Lock _lock = new();
        private readonly List<(double Seconds, string Operation, string Durability, string Outcome)> _durations = [];
        private readonly List<(string Name, string Operation)> _counted = [];
        private readonly Dictionary<string, long> _observed = [];

        public Recorder()
        {
            _listener.InstrumentPublished = static (instrument, listener) =>
            {
                if (instrument.Meter.Name == ClientMeter.Name)
                {
                    listener.EnableMeasurementEvents(instrument);
                }
            };
            _listener.SetMeasurementEventCallback<double>((_, seconds, tags, _) =>
            {
                lock (_lock)
                {
                    _durations.Add((seconds, Tag(tags, "operation"), Tag(tags, "durability"), Tag(tags, "outcome")));
                }
            });
            _listener.SetMeasurementEventCallback<long>((instrument, number, tags, _) =>
            {
                lock (_lock)
                {
                    if (instrument.IsObservable)
                    {
                        _observed[instrument.Name] = number;
                    }
                    else
                    {
                        _counted.Add((instrument.Name, Tag(tags, "operation")));
                    }
                }
            });
            _listener.Start();
        }

        public (double Seconds, string Operation, string Durability, string Outcome)[] Durations
        {
            get
            {
                lock (_lock)
                {
                    return [.. _durations];
                }
            }
        }

        public (string Name, string Operation)[] Counted
        {
            get
            {
                lock (_lock)
                {
                    return [.. _counted];
                }
            }
        }

        public void Observe() => _listener.RecordObservableInstruments();

        public long Observed(string name)
        {
            lock (_lock)
            {
                return _observed[name];
            }
        }

        public void Dispose() => _listener.Dispose();

        private static string Tag(ReadOnlySpan<KeyValuePair<string, object?>> tags, string name)
        {
            foreach (KeyValuePair<string, object?> tag in tags)
            {
                if (tag.Key == "kahuna." + name)
                {
                    return (string)tag.Value!;
                }
            }

            return "";
        }
    }
}
