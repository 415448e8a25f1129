using Grpc.Core;
using Kahuna.Server.Api.Calls;

namespace Kahuna.Tests.Api;

/// <summary>The memory of pages that were read and not sent is shared by the connections of a node.</summary>
public sealed class ScanBudgetTests
{
    private const int PageBytes = 1 << 20;

    private readonly ScanBudget _budget = new();

    [Fact]
    public async Task A_connection_gets_half_of_what_is_free()
    {
        Assert.Equal(43, await FillAsync(new ScanShare(), "The connection's scans hold 44032 KiB"));
        Assert.Equal(29, await FillAsync(new ScanShare(), "The connection's scans hold"));
        Assert.Equal(19, await FillAsync(new ScanShare(), "The connection's scans hold"));
        ScanShare[] many = [.. Enumerable.Range(0, 200).Select(static _ => new ScanShare())];
        foreach (ScanShare each in many)
        {
            await FillAsync(each, "scans hold");
        }

        Assert.InRange(_budget.Bytes, 120 * PageBytes, 130 * PageBytes);
        Assert.Equal(0, _budget.Pages);
        _budget.Hold(many[0], -_budget.Bytes);
        Assert.Equal(43, await FillAsync(new ScanShare(), "The connection's scans hold"));
    }

    /// <summary>Reads pages until one is refused, and returns how many there were.</summary>
    private async Task<int> FillAsync(ScanShare share, string words)
    {
        for (int pages = 0; ; pages++)
        {
            try
            {
                await _budget.EnterAsync(share, default);
            }
            catch (RpcException refused)
            {
                Assert.Equal(StatusCode.ResourceExhausted, refused.StatusCode);
                Assert.Contains(words, refused.Status.Detail, StringComparison.Ordinal);
                return pages;
            }

            _budget.Hold(share, PageBytes);
            _budget.Leave();
        }
    }
}
