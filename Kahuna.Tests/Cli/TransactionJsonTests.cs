using System.Text;
using Kahuna.Cli.Commands.Transactions;
using Kahuna.Cli.Errors;

namespace Kahuna.Tests.Cli;

/// <summary>Transactions in JSON: what is read, and the place of what is refused.</summary>
public sealed class TransactionJsonTests
{
    [Fact]
    public void All_conditions_and_operations_are_read()
    {
        TransactionPlan plan = Read("""
            {"if":[{"key":"a","value":"x"},{"key":"a","valueBase64":"AP8="},{"key":"b","revision":7},
                   {"key":"c","exists":false},{"key":"d","exists":true},{"noKeys":"p/"},{"noOtherKeys":"q/"}],
             "then":[{"set":"a","value":"y","ttl":"30s"},{"set":"b","valueBase64":"AP8="},{"get":"b"},{"exists":"c"},
                     {"delete":"c"},{"extend":"d","ttl":"0"},{"increment":"e"},{"increment":"e","by":-2}],
             "else":[{"get":"a"}]}
            """);
        Assert.Equal((7, 8, 1), (plan.Conditions.Count, plan.Then.Count, plan.Else.Count));
        Assert.Equal(
            "Set,Set,Get,Exists,Delete,Extend,Increment,Increment", string.Join(',', plan.Then.Select(o => o.Kind)));
    }

    [Theory]
    [InlineData("""{"then":[{"get":"a"},{"get":"b"},{"set":"c","value":"x","ttl":"soon"}]}""", "then[2].ttl: ")]
    [InlineData("""{"then":[{"set":"c","value":"x","ttl":30}]}""", "then[0].ttl: ")]
    [InlineData("""{"then":[{"set":"c","value":7}]}""", "then[0].value: ")]
    [InlineData("""{"then":[{"set":"c","value":null}]}""", "then[0].value: ")]
    [InlineData("""{"then":[{"set":"c","valueBase64":"?"}]}""", "then[0].valueBase64: ")]
    [InlineData("""{"then":[{"set":"c","value":"x","valueBase64":"AA=="}]}""", "then[0]: ")]
    [InlineData("""{"then":[{"set":"c"}]}""", "then[0]: ")]
    [InlineData("""{"then":[{"set":"c","value":"\ud800"}]}""", "then[0].value: ")]
    [InlineData("""{"then":[{"get":"a","get":"b"}]}""", "then[0].get: ")]
    [InlineData("""{"then":[{"get":"a","delete":"b"}]}""", "then[0]: ")]
    [InlineData("""{"then":[{"get":"a","ttl":"1s"}]}""", "then[0].ttl: ")]
    [InlineData("""{"then":[{"get":7}]}""", "then[0].get: ")]
    [InlineData("""{"then":[{"extend":"a"}]}""", "then[0].ttl: ")]
    [InlineData("""{"then":[{"increment":"a","by":1.5}]}""", "then[0].by: ")]
    [InlineData("""{"then":[{"fetch":"a"}]}""", "then[0].fetch: ")]
    [InlineData("""{"then":[{}]}""", "then[0]: ")]
    [InlineData("""{"then":[7]}""", "then[0]: ")]
    [InlineData("""{"then":{"get":"a"}}""", "then: ")]
    [InlineData("""{"then":[{"get":"a"}],"then":[]}""", "then: ")]
    [InlineData("""{"then":[{"get":"a"}],"when":[]}""", "when: ")]
    [InlineData("""{"then":[{"get":"a"}],"else":[{"set":"b"}]}""", "else[0]: ")]
    [InlineData("""{"if":[{"key":"a"}],"then":[{"get":"a"}]}""", "if[0]: ")]
    [InlineData("""{"if":[{"exists":true}],"then":[{"get":"a"}]}""", "if[0].key: ")]
    [InlineData("""{"if":[{"key":"a","exists":"yes"}],"then":[{"get":"a"}]}""", "if[0].exists: ")]
    [InlineData("""{"if":[{"key":"a","revision":0}],"then":[{"get":"a"}]}""", "if[0].revision: ")]
    [InlineData("""{"if":[{"key":"a","noKeys":"b"}],"then":[{"get":"a"}]}""", "if[0].key: ")]
    [InlineData("""{"if":[{"key":"a","exists":true}]}""", "then: ")]
    [InlineData("{}", "then: ")]
    [InlineData("""{"then":[{"get":"a"}]""", "no JSON at line 1")]
    [InlineData("""{"then":[{"get":"a"}]} x""", "no JSON at line 1")]
    public void What_is_wrong_is_refused_with_its_place(string json, string expected)
    {
        CliException failure = Assert.Throws<CliException>(() => Read(json));
        Assert.Equal(ExitCode.Usage, failure.ExitCode);
        Assert.Contains(expected, failure.Message, StringComparison.Ordinal);
        Assert.DoesNotContain('\n', failure.Message);
    }

    [Fact]
    public void Too_many_elements_and_bytes_are_refused()
    {
        string gets = string.Join(',', Enumerable.Repeat("""{"get":"a"}""", 1001));
        Assert.StartsWith("then: ", Refusal($$"""{"then":[{{gets}}]}"""), StringComparison.Ordinal);
        Assert.Contains("split it", Refusal("{" + new string(' ', TransactionJson.BytesMax)), StringComparison.Ordinal);
        Assert.True(Refusal($$"""{"{{new string('x', 100_000)}}":1}""").Length < 300);
    }

    [Theory]
    [InlineData("{}", true)]
    [InlineData(" \r\n\t{", true)]
    [InlineData("\ufeff{", true)]
    [InlineData("get a", false)]
    [InlineData("", false)]
    [InlineData("# {", false)]
    public void A_brace_at_the_beginning_means_JSON(string input, bool expected) =>
        Assert.Equal(expected, TransactionJson.Is(Encoding.UTF8.GetBytes(input)));

    private static TransactionPlan Read(string json) =>
        TransactionJson.Read(Encoding.UTF8.GetBytes(json), Durability.Persistent);

    private static string Refusal(string json) => Assert.Throws<CliException>(() => Read(json)).Message;
}
