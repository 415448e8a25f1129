using Kahuna.Client;

namespace Kahuna.Tests.Cluster;

/// <summary>
/// Writers that fill the log: large values over a fixed number of keys, up to some megabytes a second; what fails is
/// tried with the next key. Owned by one test.
/// </summary>
internal sealed class BulkLoad : IAsyncDisposable
{
    private const int Writers = 8;

    private readonly KahunaClient _client;
    private readonly int _keys;
    private readonly byte[] _value;
    private readonly CancellationTokenSource _stop = new();
    private readonly Task[] _writers;

    public BulkLoad(KahunaClient client, int keys, int valueBytes)
    {
        _client = client;
        _keys = keys;
        _value = new byte[valueBytes];
        Random.Shared.NextBytes(_value);
        _writers = [.. Enumerable.Range(0, Writers).Select(writer => Task.Run(() => WriteAsync(writer)))];
    }

    public async ValueTask DisposeAsync()
    {
        await _stop.CancelAsync();
        await Task.WhenAll(_writers);
        _stop.Dispose();
    }

    private async Task WriteAsync(int writer)
    {
        for (int i = writer; !_stop.IsCancellationRequested; i += Writers)
        {
            try
            {
                await _client.KeyValues.SetAsync($"bulk{i % _keys}", _value);
            }
            catch (KahunaException)
            {
                // Nodes are killed meanwhile.
            }

            // Not as fast as the cluster takes them: what others test beside this has its time too.
            await Task.Delay(10);
        }
    }
}
