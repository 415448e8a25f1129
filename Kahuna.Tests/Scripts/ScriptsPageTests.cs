using System.Globalization;
using System.Text.Encodings.Web;
using System.Text.Json;
using System.Text.RegularExpressions;
using Kahuna.Tests.Tidy;
using Kahuna.Wire.Scripts;

namespace Kahuna.Tests.Scripts;

/// <summary>
/// The scripts of docs/scripts.md run in their order against one store. The last line of each says what it returns, as
/// JSON, or which words its error has.
/// </summary>
public sealed partial class ScriptsPageTests
{
    private const string Returns = "# returns ";
    private const string Fails = "# fails: ";

    private static readonly JavaScriptEncoder s_json = JavaScriptEncoder.UnsafeRelaxedJsonEscaping;

    [Fact]
    public void Every_script_does_what_the_page_says()
    {
        ExampleStore store = new();
        string page = File.ReadAllText(Repository.FullPath("docs/scripts.md"));
        string[] scripts = [.. Block().Matches(page).Select(match => match.Groups[1].Value.Trim())];
        Assert.True(scripts.Length > 8, $"{scripts.Length} scripts");
        foreach (string script in scripts)
        {
            string last = script.Split('\n')[^1];
            if (last.StartsWith(Fails, StringComparison.Ordinal))
            {
                InvalidOperationException failure = Assert.Throws<InvalidOperationException>(() => store.Run(script));
                Assert.Contains(last[Fails.Length..], failure.Message, StringComparison.Ordinal);
            }
            else
            {
                Assert.StartsWith(Returns, last, StringComparison.Ordinal);
                string result = Text(store.Run(script));
                Assert.True(last[Returns.Length..] == result, $"{script}\nreturned {result}");
            }
        }
    }

    private static string Text(ScriptValue value) => value.Kind switch
    {
        ScriptValueKind.Null => "null",
        ScriptValueKind.Bool => value.AsBool ? "true" : "false",
        ScriptValueKind.Integer => value.AsInteger.ToString(CultureInfo.InvariantCulture),
        ScriptValueKind.Double => value.AsDouble.ToString("R", CultureInfo.InvariantCulture),
        ScriptValueKind.String => '"' + JsonEncodedText.Encode(value.AsString, s_json).ToString() + '"',
        ScriptValueKind.Bytes => Convert.ToHexString(value.AsBytes.Span),
        ScriptValueKind.Array => $"[{string.Join(',', value.Items.Select(Text))}]",
        _ => Text(value.Value),
    };

    [GeneratedRegex("^```4gl\n(.*?)^```$", RegexOptions.Multiline | RegexOptions.Singleline)]
    private static partial Regex Block();
}
