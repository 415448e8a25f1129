using System.Text;
using Kahuna.Tests.Cluster;
using Xunit.Abstractions;

namespace Kahuna.Tests.Access.Hostile;

/// <summary>
/// Some seconds of the hostile user, with another seed each time; scripts/hostile.sh goes on for longer.
/// </summary>
[Collection(ClusterCollection.Name)]
public sealed class HostileTests(ITestOutputHelper output)
{
    [Fact]
    public async Task A_hostile_user_learns_changes_and_stops_nothing_of_others()
    {
        HostileRun run = new(TimeSpan.FromSeconds(25), Random.Shared.Next(1, 1_000_000), output);
        output.WriteLine(await run.RunAsync());
    }

    [Fact]
    public void The_marker_is_found_as_it_is_and_in_base64_wherever_it_begins()
    {
        SecretMarker marker = new();
        for (int before = 0; before < 7; before++)
        {
            byte[] text = [.. new byte[before], .. Encoding.ASCII.GetBytes(marker.Text), .. "more"u8];
            Assert.True(marker.IsIn(text));
            Assert.True(marker.IsIn(Encoding.ASCII.GetBytes(Convert.ToBase64String(text))));
        }

        Assert.False(marker.IsIn(Encoding.ASCII.GetBytes(new SecretMarker().Text)));
    }

    [Fact]
    public async Task It_is_found_in_what_is_read_in_pieces()
    {
        SecretMarker marker = new();
        HostileTally tally = new();
        await using ScannedStream stream = new(
            new MemoryStream(Encoding.ASCII.GetBytes("before " + marker.Text + " after")), marker, tally);
        byte[] one = new byte[1];
        while (await stream.ReadAsync(one) > 0)
        {
        }

        Assert.Equal(1, tally.Revealed);
        Assert.NotEmpty(tally.Problems);
    }
}
