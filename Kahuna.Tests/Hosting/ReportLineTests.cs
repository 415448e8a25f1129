using System.Globalization;
using Kahuna.Server.Primitives;

namespace Kahuna.Tests.Hosting;

/// <summary>A line for people is an event with fields for programs.</summary>
public sealed class ReportLineTests
{
    [Fact]
    public void An_interpolated_string_keeps_its_values_by_name()
    {
        (string Title, int Keys) group = ("partition 1", 1234567);
        ReportLine line = Say($"{group.Title}: {group.Keys:N0} keys in {1.5 * 2:0.0} s, {{{group.Keys}}}.");

        Assert.Equal("partition 1: 1,234,567 keys in 3.0 s, {1234567}.", line.ToString());
        Assert.Equal(
            [
                "GroupTitle=partition 1",
                "GroupKeys=1234567",
                "Value3=3",
                "GroupKeys4=1234567",
                "{OriginalFormat}={GroupTitle}: {GroupKeys} keys in {Value3} s, {{{GroupKeys4}}}.",
            ],
            line.Select(field => string.Create(CultureInfo.InvariantCulture, $"{field.Key}={field.Value}")));
    }

    [Fact]
    public void A_text_without_values_is_a_line_without_fields()
    {
        ReportLine line = Say($"all is {{well}}");

        Assert.Equal("all is {well}", line.ToString());
        Assert.Equal("{OriginalFormat}", Assert.Single(line).Key);
    }

    private static ReportLine Say(ReportLine line) => line;
}
